#include "analysis/profile.h"

#include <cmath>
#include <numbers>
#include <stdexcept>

namespace gradflow {

namespace {

/// Changes below this are the rounding of the fit.
constexpr double negligible_change = 1e-9;

std::optional<ProfileForm> better_of(double exponential_residual, double power_residual) {
  constexpr double rounding = 1e-20;
  if (exponential_residual < rounding && power_residual < rounding) return std::nullopt;
  return exponential_residual <= power_residual ? ProfileForm::exponential : ProfileForm::power;
}

std::optional<double> ratio_of(std::span<const double> values) {
  if (values.empty()) return std::nullopt;
  if (!std::isfinite(values.front()) || !std::isfinite(values.back()) || values.back() == 0) return std::nullopt;
  return values.front() / values.back();
}

}  // namespace

std::string_view name_of(ProfileForm form) { return form == ProfileForm::exponential ? "exponential" : "power"; }

std::string_view name_of(ProfileVerdict verdict, Flow flow) {
  const bool gradient = flow == Flow::gradient;
  switch (verdict) {
    case ProfileVerdict::undecided: return "undecided";
    case ProfileVerdict::flat: return "flat";
    case ProfileVerdict::falling: return "falling";
    case ProfileVerdict::rising: return "rising";
    case ProfileVerdict::tenfold_falling: return gradient ? "vanishing" : "shrinking";
    case ProfileVerdict::tenfold_rising: return gradient ? "exploding" : "growing";
    case ProfileVerdict::not_finite: return "not finite";
  }
  return "";
}

std::optional<ProfileForm> ProfileFit::better() const {
  if (!exponential || !power) return std::nullopt;
  return better_of(exponential->residual_sum_of_squares, power->residual_sum_of_squares);
}

ProfileVerdict profile_verdict(std::span<const double> rates, std::int64_t blocks, std::int64_t not_finite) {
  if (rates.empty() && not_finite > 0) return ProfileVerdict::not_finite;
  if (rates.size() < 3) return ProfileVerdict::undecided;
  const MeanInterval rate = *student_interval(rates);
  const double low = rate.low * static_cast<double>(blocks);
  const double high = rate.high * static_cast<double>(blocks);
  if (high < -std::numbers::ln10) return ProfileVerdict::tenfold_falling;
  if (low > std::numbers::ln10) return ProfileVerdict::tenfold_rising;
  if (high < -negligible_change) return ProfileVerdict::falling;
  if (low > negligible_change) return ProfileVerdict::rising;
  return ProfileVerdict::flat;
}

ProfileFit fit_profile(std::span<const double> values, Flow flow) {
  ProfileFit fit;
  std::vector<double> distances, log_distances, log_values;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) {
      ++fit.not_finite;
      continue;
    }
    if (values[i] <= 0) {
      ++fit.left_out;
      continue;
    }
    const auto distance = static_cast<double>(flow == Flow::gradient ? values.size() - i : i + 1);
    distances.push_back(distance);
    log_distances.push_back(std::log(distance));
    log_values.push_back(std::log(values[i]));
  }
  if (fit.not_finite == 0) {
    fit.exponential = fit_line(distances, log_values);
    fit.power = fit_line(log_distances, log_values);
  }
  fit.ratio = ratio_of(values);
  return fit;
}

DepthProfile depth_profile(std::span<const std::vector<double>> seeds, Flow flow) {
  DepthProfile profile;
  std::vector<double> rates, exponents, ratios;
  double exponential_residual = 0;
  double power_residual = 0;
  for (const std::vector<double>& values : seeds) {
    if (values.size() != seeds.front().size()) throw std::logic_error("profiles of stacks of different depth");
    const ProfileFit fit = fit_profile(values, flow);
    profile.left_out += fit.left_out;
    if (fit.not_finite > 0) ++profile.not_finite;
    if (fit.ratio) ratios.push_back(*fit.ratio);
    if (!fit.exponential || !fit.power) continue;
    ++profile.seeds;
    rates.push_back(fit.exponential->slope);
    exponents.push_back(fit.power->slope);
    exponential_residual += fit.exponential->residual_sum_of_squares;
    power_residual += fit.power->residual_sum_of_squares;
  }
  profile.rate = mean_over_seeds(rates);
  profile.exponent = mean_over_seeds(exponents);
  profile.ratio = mean_over_seeds(ratios);
  if (profile.seeds > 0) profile.better = better_of(exponential_residual, power_residual);
  if (!seeds.empty())
    profile.verdict = profile_verdict(rates, static_cast<std::int64_t>(seeds.front().size()), profile.not_finite);
  return profile;
}

}  // namespace gradflow
