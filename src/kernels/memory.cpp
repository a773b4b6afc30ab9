#include "kernels/memory.h"

#include <algorithm>
#include <cmath>

#include "config/derived.h"
#include "config/placements.h"
#include "kernels/attention.h"
#include "kernels/workspace.h"

namespace gradflow {
namespace {

// Fitted as the constants in model/memory_estimate.cpp, to 22 runs of depth 1 to 1000 and width 16 to 256, with and
// without recompute; all of them come out within 6 %.
constexpr double fused_program_bytes = 1.37e8;
constexpr double arena_overhead = 1.1;  // blocks that the next buffer did not fit into, what they are aligned with

/// Sizes of the buffers, as the constructors of the segments ask for them.
class BufferSizes {
 public:
  BufferSizes(const Config& config, const Layout& layout)
      : config_(config),
        model_(config.model),
        sizes_(config, layout),
        rows_(sizes_.rows),
        stream_(rows_ * sizes_.width) {}

  double logits() const {
    return piece(rows_ * static_cast<std::size_t>(config_.data.vocabulary.value())) + piece(2 * rows_);
  }

  double all_but_logits() const {
    double bytes = 3 * piece(stream_);  // gradient, and the two terms that watchers see
    bytes += 4 * piece(sizes_.chunk_rows * sizes_.width) + 2 * piece(sizes_.chunk_rows * sizes_.widest_inner);
    bytes += piece(attention(1).scratch_size()) + piece(sizes_.packed);
    bytes += piece(stream_) + (has_embedding_norm(model_) ? piece(2 * rows_) + piece(stream_) : 0);
    if (has_final_norm(model_)) bytes += piece(2 * rows_) + piece(stream_);
    return bytes + kept_blocks();
  }

  /// What the stack keeps outside of the arena under recompute.
  double group_inputs() const {
    if (!config_.compute.recompute) return 0;
    const std::int64_t last_layer = model_.depth + 1;
    return static_cast<double>(last_layer / sizes_.recompute_group) * 4 * static_cast<double>(stream_);
  }

 private:
  /// Norms of a sub-layer, or of the sub-layers that share one set of buffers.
  struct Sites {
    bool in = false, branch = false, out = false;
  };

  double kept_blocks() const {
    // Under recompute every group of blocks uses the same buffers. Blocks of `mix_ln` need different ones: a set holds
    // what any of its blocks needs.
    const std::int64_t sets = config_.compute.recompute ? sizes_.recompute_group : model_.depth;
    double bytes = 0;
    for (const SubLayerKind kind : {SubLayerKind::attention, SubLayerKind::ffn})
      for (std::int64_t first = 1; first <= sets; ++first) {
        Sites sites;
        for (std::int64_t block = first; block <= model_.depth; block += sets) add_sites(block, kind, sites);
        bytes += sub_layer(sites, kind);
      }
    return bytes;
  }

  void add_sites(std::int64_t block, SubLayerKind kind, Sites& sites) const {
    if (model_.norm == Norm::none) return;
    const SubLayerPlan& plan = sub_layer_plan(model_, block, kind);
    sites.in |= plan.norm_in;
    sites.branch |= plan.norm_branch;
    sites.out |= plan.norm_out;
  }

  double sub_layer(const Sites& sites, SubLayerKind kind) const {
    const bool learned = model_.residual == Residual::scaled || model_.residual == Residual::rezero;
    double bytes = piece(stream_);  // the output
    for (const bool site : {sites.in, sites.branch, sites.out})
      if (site) bytes += piece(2 * rows_);
    for (const bool kept : {sites.out, sites.branch, learned})  // the sum, before the branch's norm, the branch's term
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

FusedBuffers fused_buffers(const Config& config, const Layout& layout) {
  const BufferSizes sizes(config, layout);
  return {sizes.all_but_logits(), sizes.logits(), sizes.group_inputs()};
}

MemoryEstimate memory_estimate(const Config& config, const Layout& layout, Backend backend) {
  MemoryEstimate estimate = memory_estimate(config, layout);
  if (backend != Backend::fused) return estimate;
  const FusedBuffers buffers = fused_buffers(config, layout);
  estimate.program = fused_program_bytes;
  estimate.activations = arena_overhead * buffers.activations + buffers.group_inputs;
  estimate.logits = arena_overhead * buffers.logits;
  return estimate;
}

}  // namespace gradflow
