#include "config/placements.h"

#include <array>

#include "config/derived.h"

namespace gradflow {
namespace {

constexpr SubLayerPlan plain{};
constexpr SubLayerPlan pre{.norm_in = true};
constexpr SubLayerPlan post{.norm_out = true};
constexpr SubLayerPlan sandwich{.norm_in = true, .norm_branch = true};

// One row a placement, in the order of the enumeration. How to add one: src/README.md.
constexpr std::array rows{
    PlacementRow{.placement = Placement::none, .attention = plain, .ffn = plain, .source = "plain residual sum"},
    PlacementRow{.placement = Placement::pre,
                 .attention = pre,
                 .ffn = pre,
                 .final_step = FinalStep::norm,
                 .source = "Xiong et al. 2020 (GPT-2, LLaMA)"},
    PlacementRow{.placement = Placement::post, .attention = post, .ffn = post, .source = "Vaswani et al. 2017"},
    PlacementRow{.placement = Placement::deepnorm,
                 .attention = {.norm_out = true, .skip_scale = SkipScale::deepnorm_alpha},
                 .ffn = {.norm_out = true, .skip_scale = SkipScale::deepnorm_alpha},
                 .gain = BranchGain::deepnorm_beta,
                 .own_sum = true,
                 .needs_norm = true,
                 .source = "Wang et al. 2022 (DeepNet)"},
    PlacementRow{.placement = Placement::sandwich,
                 .attention = sandwich,
                 .ffn = sandwich,
                 .final_step = FinalStep::norm,
                 .source = "Ding et al. 2021 (CogView)"},
    PlacementRow{.placement = Placement::peri,
                 .attention = sandwich,
                 .ffn = sandwich,
                 .final_step = FinalStep::norm,
                 .embedding_norm = true,
                 .source = "Kim et al. 2025 (Peri-LN)"},
    PlacementRow{.placement = Placement::reordered,
                 .attention = {.norm_branch = true},
                 .ffn = {.norm_branch = true},
                 .final_step = FinalStep::norm,
                 .source = "OLMo 2 2024"},
    PlacementRow{.placement = Placement::lns,
                 .attention = {.norm_in = true, .input_scale = InputScale::inverse_sqrt_layer},
                 .ffn = {.norm_in = true, .input_scale = InputScale::inverse_sqrt_layer},
                 .final_step = FinalStep::norm,
                 .source = "Sun et al. 2025 (Curse of Depth)"},
    PlacementRow{.placement = Placement::sub_ln,
                 .attention = {.norm_in = true, .inner_norm = true},
                 .ffn = {.norm_in = true, .inner_norm = true},
                 .gain = BranchGain::sqrt_log_2n,
                 .final_step = FinalStep::norm,
                 .needs_norm = true,
                 .source = "Wang et al. 2022 (Magneto)"},
    PlacementRow{.placement = Placement::normformer,
                 .attention = {.norm_in = true, .norm_branch = true, .head_scale = true},
                 .ffn = {.norm_in = true, .inner_norm = true},
                 .final_step = FinalStep::norm,
                 .needs_norm = true,
                 .source = "Shleifer et al. 2021 (NormFormer)"},
    PlacementRow{.placement = Placement::resi_dual,
                 .attention = post,
                 .ffn = post,
                 .final_step = FinalStep::norm_of_second_stream,
                 .second_stream = true,
                 .own_sum = true,
                 .needs_norm = true,
                 .source = "Xie et al. 2023 (ResiDual)"},
    PlacementRow{.placement = Placement::b2t,
                 .attention = post,
                 .ffn = {.norm_out = true, .adds_block_input = true},
                 .own_sum = true,
                 .needs_norm = true,
                 .source = "Takase et al. 2022 (B2T connection)"},
    PlacementRow{.placement = Placement::admin,
                 .attention = {.norm_out = true, .skip_scale = SkipScale::learned_admin},
                 .ffn = {.norm_out = true, .skip_scale = SkipScale::learned_admin},
                 .own_sum = true,
                 .needs_norm = true,
                 .source = "Liu et al. 2020 (Admin)"},
    PlacementRow{.placement = Placement::keel,
                 .attention = {.norm_in = true, .norm_out = true, .skip_scale = SkipScale::keel_alpha},
                 .ffn = {.norm_in = true, .norm_out = true, .skip_scale = SkipScale::keel_alpha},
                 .own_sum = true,
                 .needs_norm = true,
                 .source = "KEEL 2026"},
    PlacementRow{.placement = Placement::hybrid_norm,
                 .attention = {.norm_query_key_value = true},
                 .ffn = {.norm_in = true, .skip_is_normed = true},
                 .final_step = FinalStep::norm,
                 .own_sum = true,
                 .needs_norm = true,
                 .source = "Zhuo et al. 2025 (HybridNorm)"},
    // The plans of mix_ln are those of post and pre, chosen by block in sub_layer_plan.
    PlacementRow{.placement = Placement::mix_ln,
                 .attention = pre,
                 .ffn = pre,
                 .final_step = FinalStep::norm,
                 .source = "Li et al. 2024 (Mix-LN)"},
};

static_assert(rows.size() == names_of(Placement{}).size());

}  // namespace

std::span<const PlacementRow> placement_rows() { return rows; }

const PlacementRow& placement_row(Placement placement) { return rows[static_cast<std::size_t>(placement)]; }

const SubLayerPlan& sub_layer_plan(const ModelConfig& model, std::int64_t block, SubLayerKind kind) {
  Placement placement = model.placement;
  if (placement == Placement::mix_ln) {
    const auto post_blocks = share_of(model.mix_post_fraction, model.depth);
    placement = block <= post_blocks ? Placement::post : Placement::pre;
  }
  const PlacementRow& row = placement_row(placement);
  return kind == SubLayerKind::attention ? row.attention : row.ffn;
}

}  // namespace gradflow
