#include "kernels/memory.h"

#include <algorithm>
#include <cmath>

#include "config/derived.h"
#include "config/placements.h"
#include "kernels/attention.h"
#include "kernels/workspace.h"

namespace gradflow {
namespace {

// Fitted as the constants in model/memory_estimate.cpp, to twelve runs of depth 1 to 1000 and width 16 to 256, with and
// without recompute; all of them come out within 6 %.
constexpr double fused_program_bytes = 1.33e8;
constexpr double arena_overhead = 1.1;  // blocks that the next buffer did not fit into, what they are aligned with

/// Sizes of the buffers, as the constructors of the segments ask for them.
class BufferSizes {
 public:
  explicit BufferSizes(const Config& config)
      : config_(config), model_(config.model), sizes_(config), rows_(sizes_.rows), stream_(rows_ * sizes_.width) {}

  double logits() const {
    return piece(rows_ * static_cast<std::size_t>(config_.data.vocabulary.value())) + piece(2 * rows_);
  }

  double all_but_logits() const {
    double bytes = 3 * piece(stream_);  // gradient, and the two terms that watchers see
    bytes += 4 * piece(sizes_.chunk_rows * sizes_.width) + 2 * piece(sizes_.chunk_rows * sizes_.widest_inner);
    bytes += piece(attention(1).scratch_size());
    bytes += piece(stream_) + (has_embedding_norm(model_) ? piece(2 * rows_) + piece(stream_) : 0);
    if (has_final_norm(model_)) bytes += piece(2 * rows_) + piece(stream_);
    return bytes + (config_.compute.recompute ? shared_blocks() : kept_blocks());
  }

 private:
  double kept_blocks() const {
    double bytes = 0;
    for (std::int64_t block = 1; block <= model_.depth; ++block)
      for (const SubLayerKind kind : {SubLayerKind::attention, SubLayerKind::ffn}) bytes += sub_layer(block, kind);
    return bytes;
  }

  /// Under recompute one set of buffers serves all blocks, and the stack keeps the input of each. Blocks of `mix_ln`
  /// need different buffers: the set holds those of the first and of the last.
  double shared_blocks() const {
    double bytes = static_cast<double>(model_.depth) * 4 * static_cast<double>(stream_);
    for (const SubLayerKind kind : {SubLayerKind::attention, SubLayerKind::ffn})
      bytes += std::max(sub_layer(1, kind), sub_layer(model_.depth, kind));
    return bytes;
  }

  double sub_layer(std::int64_t block, SubLayerKind kind) const {
    const SubLayerPlan& plan = sub_layer_plan(model_, block, kind);
    const bool norm = model_.norm != Norm::none, norm_out = plan.norm_out && norm,
               norm_branch = plan.norm_branch && norm;
    const bool learned = model_.residual == Residual::scaled || model_.residual == Residual::rezero;
    double bytes = piece(stream_);  // the output
    for (const bool site : {plan.norm_in && norm, norm_branch, norm_out})
      if (site) bytes += piece(2 * rows_);
    for (const bool kept : {norm_out, norm_branch, learned})  // the sum, before the branch's norm, the branch's term
      if (kept) bytes += piece(stream_);
    if (kind == SubLayerKind::ffn) return bytes + piece(rows_ * static_cast<std::size_t>(model_.ffn_width.value()));
    return bytes + piece(3 * stream_) + piece(stream_) + piece(attention(sizes_.sequences).statistics_size());
  }

  AttentionShape attention(std::size_t sequences) const {
    return {.sequences = sequences,
            .tokens = sizes_.tokens,
            .width = sizes_.width,
            .heads = static_cast<std::size_t>(model_.heads),
            .causal = model_.causal};
  }

  static double piece(std::size_t floats) { return static_cast<double>(Arena::bytes_for(floats)); }

  const Config& config_;
  const ModelConfig& model_;
  WorkspaceSizes sizes_;
  std::size_t rows_, stream_;
};

}  // namespace

FusedBuffers fused_buffers(const Config& config) {
  const BufferSizes sizes(config);
  return {sizes.all_but_logits(), sizes.logits()};
}

MemoryEstimate memory_estimate(const Config& config, const Layout& layout, Backend backend) {
  MemoryEstimate estimate = memory_estimate(config, layout);
  if (backend != Backend::fused) return estimate;
  const FusedBuffers buffers = fused_buffers(config);
  estimate.program = fused_program_bytes;
  estimate.activations = arena_overhead * buffers.activations;
  estimate.logits = arena_overhead * buffers.logits;
  return estimate;
}

}  // namespace gradflow
