#include "kernels/branch.h"

#include <utility>
#include <vector>

#include "kernels/activation.h"
#include "kernels/attention.h"
#include "kernels/elementwise.h"
#include "kernels/matrix.h"
#include "kernels/prefetch.h"

namespace gradflow {
namespace {

/// softmax(q·kᵀ/√d_h)·v of every head, then `out`. Keeps q, k, v and what `out` reads.
class AttentionBranch final : public Branch {
 public:
  AttentionBranch(const Config& config, const ParameterStore& store, Workspace& workspace, KeptBuffers& kept,
                  const std::string& prefix)
      : workspace_(workspace),
        width_(workspace.width),
        heads_(static_cast<std::size_t>(config.model.heads)),
        causal_(config.model.causal),
        out_(store, prefix + ".out.weight") {
    out_bias_ = Parameter(store, prefix + ".out.bias");
    const auto projection = [&](const char* part, std::size_t first_column, std::size_t columns) {
      return Projection{Parameter(store, prefix + part + ".weight"), first_column, columns};
    };
    projections_ = {projection(".q", 0, width_), projection(".k", width_, width_),
                    projection(".v", 2 * width_, width_)};
    // Where the store leaves no gaps between them, the three matrices are one.
    const std::size_t size = width_ * width_;
    if (projections_[1].weight.value == projections_[0].weight.value + size &&
        projections_[2].weight.value == projections_[1].weight.value + size)
      projections_ = {projection(".q", 0, 3 * width_)};
    query_bias_ = Parameter(store, prefix + ".q.bias");
    key_bias_ = Parameter(store, prefix + ".k.bias");
    value_bias_ = Parameter(store, prefix + ".v.bias");

    qkv_ = kept.floats("qkv", workspace.rows * 3 * width_);
    attended_ = kept.floats("attended", workspace.rows * width_);
    statistics_ = kept.floats("softmax", shape(workspace.sequences, workspace.tokens).statistics_size());
  }

  void begin(const Batch& batch) override {
    visible_.clear();
    if (!batch.real.defined()) return;
    const at::Tensor counts = batch.real.sum(1);
    visible_.assign(counts.data_ptr<std::int64_t>(), counts.data_ptr<std::int64_t>() + counts.numel());
  }

  void forward(const Chunk& chunk, const float* z, float* f) override {
    const Kept kept = kept_of(chunk);
    for (const Projection& p : projections_) linear(map(chunk, p), z, p.weight.value, kept.qkv + p.first_column);
    attention_forward(shape(chunk), kept.qkv, biases(), visible(chunk), kept.attended, kept.statistics,
                      workspace_.attention);
    linear(out_map(chunk), kept.attended, out_.value, f);
  }

  void backward(const Chunk& chunk, const float* z, const float* df, float* dz) override {
    const Kept kept = kept_of(chunk);
    float* const qkv_gradient = workspace_.wide_gradient;
    // Of the first sequence; the kernel fetches the others ahead by itself.
    Prefetch(kept.qkv, workspace_.batch_tokens() * 3 * width_, 1).next();
    add_weight_gradient(out_map(chunk), df, kept.attended, out_.gradient);
    linear_input_gradient(out_map(chunk), df, out_.value, workspace_.inner_gradient, /*add=*/false);
    attention_backward(shape(chunk), kept.qkv, biases(), visible(chunk), workspace_.inner_gradient, kept.statistics,
                       qkv_gradient, workspace_.attention);
    std::size_t column = 0;
    for (const Parameter* bias : {&query_bias_, &key_bias_, &value_bias_}) {
      if (*bias) add_column_sums(chunk.rows, width_, qkv_gradient + column, 3 * width_, bias->gradient);
      column += width_;
    }
    bool first = true;
    for (const Projection& p : projections_) {
      add_weight_gradient(map(chunk, p), qkv_gradient + p.first_column, z, p.weight.gradient);
      linear_input_gradient(map(chunk, p), qkv_gradient + p.first_column, p.weight.value, dz,
                            !std::exchange(first, false));
    }
  }

 private:
  /// Some columns of [q k v].
  struct Projection {
    Parameter weight;
    std::size_t first_column, columns;
  };
  /// The rows of a chunk in what is kept.
  struct Kept {
    float *qkv, *attended, *statistics;
  };

  Kept kept_of(const Chunk& chunk) const {
    const std::size_t before = shape(chunk.first_sequence, workspace_.batch_tokens()).statistics_size();
    return {qkv_ + chunk.first_row * 3 * width_, attended_ + chunk.first_row * width_, statistics_ + before};
  }
  AttentionShape shape(std::size_t sequences, std::size_t tokens) const {
    return {.sequences = sequences, .tokens = tokens, .width = width_, .heads = heads_, .causal = causal_};
  }
  AttentionShape shape(const Chunk& chunk) const { return shape(chunk.sequences, workspace_.batch_tokens()); }
  AttentionBiases biases() const { return {query_bias_.value, key_bias_.value, value_bias_.value}; }
  const std::int64_t* visible(const Chunk& chunk) const {
    return visible_.empty() ? nullptr : visible_.data() + chunk.first_sequence;
  }
  LinearShape map(const Chunk& chunk, const Projection& p) const {
    return {.rows = chunk.rows, .in = width_, .out = p.columns, .x_step = width_, .y_step = 3 * width_};
  }
  LinearShape out_map(const Chunk& chunk) const {
    return {.rows = chunk.rows, .in = width_, .out = width_, .x_step = width_, .y_step = width_};
  }

  Workspace& workspace_;
  std::size_t width_, heads_;
  bool causal_;
  std::vector<Projection> projections_;
  Parameter query_bias_, key_bias_, value_bias_, out_;
  float *qkv_, *attended_, *statistics_;
  std::vector<std::int64_t> visible_;  // tokens of each sequence that are keys; empty: all
};

/// out(activation(in(z))). Keeps in(z) and computes the activation again.
class FeedForwardBranch final : public Branch {
 public:
  FeedForwardBranch(const Config& config, const ParameterStore& store, Workspace& workspace, KeptBuffers& kept,
                    const std::string& prefix)
      : workspace_(workspace),
        width_(workspace.width),
        inner_(static_cast<std::size_t>(config.model.ffn_width.value())),
        activation_(config.model.activation),
        in_(store, prefix + ".in.weight"),
        in_bias_(store, prefix + ".in.bias"),
        out_(store, prefix + ".out.weight"),
        entering_(kept.floats("entering", workspace.rows * inner_)) {
    out_bias_ = Parameter(store, prefix + ".out.bias");
  }

  void begin(const Batch&) override {}

  void forward(const Chunk& chunk, const float* z, float* f) override {
    float* const entering = entering_ + chunk.first_row * inner_;
    linear(in_map(chunk), z, in_.value, entering);
    activation_forward(activation_, chunk.rows, inner_, entering, in_bias_.value, workspace_.wide);
    linear(out_map(chunk), workspace_.wide, out_.value, f);
  }

  void backward(const Chunk& chunk, const float* z, const float* df, float* dz) override {
    const float* const entering = entering_ + chunk.first_row * inner_;
    float* const gradient = workspace_.wide_gradient;
    linear_input_gradient(out_map(chunk), df, out_.value, gradient, /*add=*/false);
    activation_backward(activation_, chunk.rows, inner_, entering, in_bias_.value, workspace_.wide, gradient,
                        in_bias_.gradient);
    add_weight_gradient(out_map(chunk), df, workspace_.wide, out_.gradient);
    add_weight_gradient(in_map(chunk), gradient, z, in_.gradient);
    linear_input_gradient(in_map(chunk), gradient, in_.value, dz, /*add=*/false);
  }

 private:
  LinearShape in_map(const Chunk& chunk) const {
    return {.rows = chunk.rows, .in = width_, .out = inner_, .x_step = width_, .y_step = inner_};
  }
  LinearShape out_map(const Chunk& chunk) const {
    return {.rows = chunk.rows, .in = inner_, .out = width_, .x_step = inner_, .y_step = width_};
  }

  Workspace& workspace_;
  std::size_t width_, inner_;
  Activation activation_;
  Parameter in_, in_bias_, out_;
  float* entering_;
};

}  // namespace

std::unique_ptr<Branch> make_branch(const Config& config, const ParameterStore& store, Workspace& workspace,
                                    KeptBuffers& kept, SubLayerKind kind, const std::string& prefix) {
  if (kind == SubLayerKind::attention) return std::make_unique<AttentionBranch>(config, store, workspace, kept, prefix);
  return std::make_unique<FeedForwardBranch>(config, store, workspace, kept, prefix);
}

}  // namespace gradflow
