#include "kernels/branch.h"

#include <utility>
#include <vector>

#include "kernels/activation.h"
#include "kernels/attention.h"
#include "kernels/elementwise.h"

namespace gradflow {
namespace {

/// Of a map that the way back through `chunk` comes to; later chunks find both in the cache.
void fetch_gradient_and_weight(const LinearMap& map, const Chunk& chunk) {
  if (chunk.first_row != 0) return;
  map.fetch_weight_gradient();
  map.fetch_weight();
}

/// softmax(q·kᵀ/√d_h)·v of every head, then `out`. Keeps q, k, v and what `out` reads.
class AttentionBranch final : public Branch {
 public:
  AttentionBranch(const Config& config, const ParameterStore& store, Workspace& workspace, KeptBuffers& kept,
                  const std::string& prefix)
      : workspace_(workspace),
        width_(workspace.width),
        heads_(static_cast<std::size_t>(config.model.heads)),
        causal_(config.model.causal) {
    WeightRoom room(workspace);
    const auto map = [&](const Parameter& weight, std::size_t out) {
      return LinearMap(weight, width_, out, room, workspace.ahead);
    };
    out_ = map({store, prefix + ".out.weight"}, width_);
    out_bias_ = Parameter(store, prefix + ".out.bias");
    const Parameter q(store, prefix + ".q.weight"), k(store, prefix + ".k.weight"), v(store, prefix + ".v.weight");
    // Where the store leaves no gaps between them, the three matrices are one.
    const std::size_t size = width_ * width_;
    if (k.value == q.value + size && v.value == k.value + size)
      projections_ = {{map(q, 3 * width_), 0}};
    else
      projections_ = {{map(q, width_), 0}, {map(k, width_), width_}, {map(v, width_), 2 * width_}};
    query_bias_ = Parameter(store, prefix + ".q.bias");
    key_bias_ = Parameter(store, prefix + ".k.bias");
    value_bias_ = Parameter(store, prefix + ".v.bias");

    qkv_ = kept.floats("qkv", workspace.rows * 3 * width_);
    attended_ = kept.floats("attended", workspace.rows * width_);
    statistics_ = kept.floats("softmax", shape(workspace.sequences, workspace.tokens).statistics_size());
  }

  void begin_forward(const Batch& batch) override {
    for (const Projection& p : projections_) p.map.begin_forward();
    out_.begin_forward();
    visible_.clear();
    if (!batch.real.defined()) return;
    const at::Tensor counts = batch.real.sum(1);
    visible_.assign(counts.data_ptr<std::int64_t>(), counts.data_ptr<std::int64_t>() + counts.numel());
  }

  void begin_backward() override {
    for (const Projection& p : projections_) p.map.begin_backward();
    out_.begin_backward();
  }

  void inner(const Chunk& chunk, const float* z) override {
    const Kept kept = kept_of(chunk);
    for (const Projection& p : projections_)
      p.map.forward(chunk.rows, {z, width_}, {kept.qkv + p.first_column, 3 * width_});
    attention_forward(shape(chunk), kept.qkv, biases(), visible(chunk), kept.attended, kept.statistics,
                      workspace_.attention);
  }

  void out(const Chunk& chunk, float* f) override {
    out_.forward(chunk.rows, {kept_of(chunk).attended, width_}, {f, width_});
  }

  void out_backward(const Chunk& chunk, const float* df) override {
    const Kept kept = kept_of(chunk);
    float* const qkv_gradient = workspace_.wide_gradient;
    for (const Projection& p : projections_) fetch_gradient_and_weight(p.map, chunk);
    out_.add_weight_gradient(chunk.rows, {df, width_}, {kept.attended, width_});
    out_.input_gradient(chunk.rows, {df, width_}, {workspace_.inner_gradient, width_});
    attention_backward(shape(chunk), kept.qkv, biases(), visible(chunk), workspace_.inner_gradient, kept.statistics,
                       qkv_gradient, workspace_.attention);
    std::size_t column = 0;
    for (const Parameter* bias : {&query_bias_, &key_bias_, &value_bias_}) {
      if (*bias) add_column_sums(chunk.rows, width_, qkv_gradient + column, 3 * width_, bias->gradient);
      column += width_;
    }
  }

  void inner_backward(const Chunk& chunk, const float* z, float* dz) override {
    bool first = true;
    for (Projection& p : projections_) {
      const Rows<const float> gradient{workspace_.wide_gradient + p.first_column, 3 * width_};
      p.map.add_weight_gradient(chunk.rows, gradient, {z, width_});
      p.map.input_gradient(chunk.rows, gradient, {dz, width_}, !std::exchange(first, false));
    }
  }

  std::vector<LinearMap*> maps() override {
    std::vector<LinearMap*> all{&out_};
    for (Projection& p : projections_) all.push_back(&p.map);
    return all;
  }

  void fetch_weights() const override {
    for (const Projection& p : projections_) p.map.fetch_weight();
    out_.fetch_weight();
  }
  void fetch_written(const Chunk& chunk) const override {
    workspace_.ahead.add(kept_of(chunk).qkv, chunk.rows * 3 * width_);
  }
  void fetch_kept(const Chunk& chunk) const override {
    const Kept kept = kept_of(chunk);
    workspace_.ahead.add(kept.attended, chunk.rows * width_);
    fetch_gradient_and_weight(out_, chunk);
    // Of the first sequence; the kernel fetches the others by itself.
    workspace_.ahead.add(kept.qkv, workspace_.batch_tokens() * 3 * width_);
  }

 private:
  /// Some columns of [q k v].
  struct Projection {
    LinearMap map;
    std::size_t first_column;
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

  Workspace& workspace_;
  std::size_t width_, heads_;
  bool causal_;
  std::vector<Projection> projections_;
  LinearMap out_;
  Parameter query_bias_, key_bias_, value_bias_;
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
        in_bias_(store, prefix + ".in.bias"),
        entering_(kept.floats("entering", workspace.rows * inner_)) {
    WeightRoom room(workspace);
    in_ = LinearMap({store, prefix + ".in.weight"}, width_, inner_, room, workspace.ahead);
    out_ = LinearMap({store, prefix + ".out.weight"}, inner_, width_, room, workspace.ahead);
    out_bias_ = Parameter(store, prefix + ".out.bias");
  }

  void begin_forward(const Batch&) override {
    in_.begin_forward();
    out_.begin_forward();
  }
  void begin_backward() override {
    in_.begin_backward();
    out_.begin_backward();
  }

  void inner(const Chunk& chunk, const float* z) override {
    in_.forward(chunk.rows, {z, width_}, {entering(chunk), inner_});
    activation_forward(activation_, chunk.rows, inner_, entering(chunk), in_bias_.value, workspace_.wide, step_);
  }

  void out(const Chunk& chunk, float* f) override { out_.forward(chunk.rows, {workspace_.wide, step_}, {f, width_}); }

  void out_backward(const Chunk& chunk, const float* df) override {
    out_.input_gradient(chunk.rows, {df, width_}, {workspace_.wide_gradient, step_});
    activation_backward(activation_, chunk.rows, inner_, entering(chunk), in_bias_.value, workspace_.wide,
                        workspace_.wide_gradient, step_, in_bias_.gradient);
    fetch_gradient_and_weight(in_, chunk);
    out_.add_weight_gradient(chunk.rows, {df, width_}, {workspace_.wide, step_});
  }

  void inner_backward(const Chunk& chunk, const float* z, float* dz) override {
    const Rows<const float> gradient{workspace_.wide_gradient, step_};
    in_.add_weight_gradient(chunk.rows, gradient, {z, width_});
    in_.input_gradient(chunk.rows, gradient, {dz, width_});
  }

  std::vector<LinearMap*> maps() override { return {&in_, &out_}; }

  void fetch_weights() const override {
    in_.fetch_weight();
    out_.fetch_weight();
  }
  void fetch_written(const Chunk& chunk) const override { workspace_.ahead.add(entering(chunk), chunk.rows * inner_); }
  void fetch_kept(const Chunk& chunk) const override {
    out_.fetch_weight();
    workspace_.ahead.add(entering(chunk), chunk.rows * inner_);
    out_.fetch_weight_gradient();
  }

 private:
  float* entering(const Chunk& chunk) const { return entering_ + chunk.first_row * inner_; }

  Workspace& workspace_;
  std::size_t width_, inner_;
  Activation activation_;
  LinearMap in_, out_;
  Parameter in_bias_;
  float* entering_;
  std::size_t step_ = wide_step(inner_);  // of what the activation gives, and of its gradient
};

}  // namespace

std::unique_ptr<Branch> make_branch(const Config& config, const ParameterStore& store, Workspace& workspace,
                                    KeptBuffers& kept, SubLayerKind kind, const std::string& prefix) {
  if (kind == SubLayerKind::attention) return std::make_unique<AttentionBranch>(config, store, workspace, kept, prefix);
  return std::make_unique<FeedForwardBranch>(config, store, workspace, kept, prefix);
}

}  // namespace gradflow
