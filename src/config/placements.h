#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "config/config.h"

namespace gradflow {

/// The two sub-layers of a Transformer block.
enum class SubLayerKind { attention, ffn };

/// What multiplies the skip before the sum.
enum class SkipScale { one, deepnorm_alpha, keel_alpha, learned_admin };
/// What multiplies the normed input of the branch.
enum class InputScale { one, inverse_sqrt_layer };
/// What multiplies the initial std of v, out, ffn.in and ffn.out.
enum class BranchGain { one, deepnorm_beta, sqrt_log_2n };
/// What follows the last block.
enum class FinalStep { nothing, norm, norm_of_second_stream };

/// One sub-layer in the general form
///   z = norm_in(x)·input_scale, f = norm_branch(F(z)), y = residual(skip_scale·x, f), x' = norm_out(y)
/// as switches: which of its sites carry the configured norm and which constants stand in it.
struct SubLayerPlan {
  bool norm_in = false;
  bool norm_branch = false;
  bool norm_out = false;
  bool inner_norm = false;            ///< inside F: before `out` in attention, after the activation in the feed-forward
  bool norm_query_key_value = false;  ///< HybridNorm: the configured norm, per head, on q, k and v
  bool head_scale = false;            ///< NormFormer: a learned factor a head
  bool skip_is_normed = false;        ///< HybridNorm's feed-forward: the norm's output is the skip
  bool adds_block_input = false;      ///< B2T: the block's input joins the sum
  InputScale input_scale = InputScale::one;
  SkipScale skip_scale = SkipScale::one;
};

/// A placement: one row of the table in placements.cpp, which is all that distinguishes it in this program.
struct PlacementRow {
  Placement placement;
  SubLayerPlan attention;
  SubLayerPlan ffn;
  BranchGain gain = BranchGain::one;
  FinalStep final_step = FinalStep::nothing;
  bool embedding_norm = false;
  bool second_stream = false;  ///< ResiDual: r collects the branches beside x
  bool own_sum = false;        ///< defines its own sum: takes residual `add` only
  bool needs_norm = false;     ///< senseless without a norm: refuses norm `none`
  std::string_view source;     ///< the paper
};

std::span<const PlacementRow> placement_rows();
const PlacementRow& placement_row(Placement placement);

/// The plan of one sub-layer of block `block` (from 1): the placement's row, except for `mix_ln`, whose first
/// ⌊mix_post_fraction·depth⌋ blocks follow `post` and whose others follow `pre`.
const SubLayerPlan& sub_layer_plan(const ModelConfig& model, std::int64_t block, SubLayerKind kind);

}  // namespace gradflow
