#include "config/constants.h"

#include <utility>

#include "config/derived.h"
#include "config/placements.h"
#include "core/numbers.h"

namespace gradflow {
namespace {

/// Constants can stand on either sub-layer of a placement's row.
bool scales_skip_by(const PlacementRow& row, SkipScale scale) {
  return row.attention.skip_scale == scale || row.ffn.skip_scale == scale;
}

std::string formula_or_configured(const std::optional<double>& configured, std::string formula) {
  return configured ? "configured in the place of " + formula : std::move(formula);
}

}  // namespace

std::vector<Constant> model_constants(const ModelConfig& model) {
  const PlacementRow& row = placement_row(model.placement);
  std::vector<Constant> out;
  if (scales_skip_by(row, SkipScale::deepnorm_alpha))
    out.push_back({"deepnorm_alpha", "α", deepnorm_alpha(model),
                   formula_or_configured(model.deepnorm_alpha, "(2N)^¼") + ", on the skip"});
  if (row.gain == BranchGain::deepnorm_beta)
    out.push_back(
        {"deepnorm_beta", "β", deepnorm_beta(model),
         formula_or_configured(model.deepnorm_beta, "(8N)^-¼") + ", on the initial std of v, out, ffn.in and ffn.out"});
  if (row.gain == BranchGain::sqrt_log_2n)
    out.push_back(
        {"branch_gain", "gain", placement_gain(model), "√ln(2N), on the initial std of v, out, ffn.in and ffn.out"});
  if (scales_skip_by(row, SkipScale::keel_alpha))
    out.push_back(
        {"keel_alpha", "α", keel_alpha(model), formula_or_configured(model.keel_alpha, "2N") + ", on the skip"});
  if (scales_skip_by(row, SkipScale::learned_admin))
    out.push_back(
        {"admin_omega", "ω", admin_omega(model), "√((n+1)/ln(n+1) − 1), n = 2N, start of the learned skip vector"});
  const std::string exponent =
      model.branch_scale_exponent == 0 ? "" : " / N^" + significant(model.branch_scale_exponent, 6);
  out.push_back({"branch_factor", "branch factor", branch_factor(model), "branch_scale" + exponent});
  return out;
}

}  // namespace gradflow
