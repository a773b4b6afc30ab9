#include "analysis/profile.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <stdexcept>

namespace gradflow {
namespace {

std::vector<double> profile(std::int64_t blocks, const std::function<double(double)>& value_of_block) {
  std::vector<double> values;
  for (std::int64_t l = 1; l <= blocks; ++l) values.push_back(value_of_block(static_cast<double>(l)));
  return values;
}

TEST(FitProfile, ActivationsCountDistanceFromTheInput) {
  const ProfileFit fit = fit_profile(profile(12, [](double l) { return 3 * std::exp(0.25 * l); }), Flow::activation);
  ASSERT_TRUE(fit.exponential && fit.power);
  EXPECT_NEAR(fit.exponential->slope, 0.25, 1e-12);
  EXPECT_NEAR(fit.exponential->intercept, std::log(3), 1e-12);
  EXPECT_EQ(fit.better(), ProfileForm::exponential);
  EXPECT_NEAR(*fit.ratio, std::exp(-0.25 * 11), 1e-12);
  EXPECT_EQ(fit.left_out, 0);
}

TEST(FitProfile, GradientsCountDistanceFromTheOutput) {
  const ProfileFit exponential = fit_profile(profile(12, [](double l) { return std::exp(0.25 * l); }), Flow::gradient);
  EXPECT_NEAR(exponential.exponential->slope, -0.25, 1e-12);  // falls on its way down

  const ProfileFit power =
      fit_profile(profile(24, [](double l) { return 2 * std::pow(24 - l + 1, -1.5); }), Flow::gradient);
  EXPECT_NEAR(power.power->slope, -1.5, 1e-12);
  EXPECT_NEAR(power.power->intercept, std::log(2), 1e-12);
  EXPECT_EQ(power.better(), ProfileForm::power);
}

TEST(FitProfile, LeavesOutWhatHasNoLogarithm) {
  std::vector<double> values = profile(10, [](double l) { return std::exp(0.1 * l); });
  values[2] = 0;
  values[7] = -1;
  const ProfileFit fit = fit_profile(values, Flow::activation);
  EXPECT_EQ(fit.left_out, 2);
  EXPECT_EQ(fit.not_finite, 0);
  EXPECT_NEAR(fit.exponential->slope, 0.1, 1e-12);
}

TEST(FitProfile, OfAStackThatIsNotFiniteThereIsNone) {
  for (const double overflow : {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN(),
                                -std::numeric_limits<double>::infinity()}) {
    std::vector<double> values = profile(10, [](double l) { return std::exp(9 * l); });
    values[8] = values[9] = overflow;
    const ProfileFit fit = fit_profile(values, Flow::activation);
    EXPECT_EQ(fit.not_finite, 2);
    EXPECT_EQ(fit.left_out, 0);
    EXPECT_FALSE(fit.exponential);
    EXPECT_FALSE(fit.power);
    EXPECT_FALSE(fit.better());
    EXPECT_FALSE(fit.ratio);
  }
}

TEST(FitProfile, TinyValuesAreNotZero) {
  const ProfileFit fit =
      fit_profile(profile(8, [](double l) { return 1e-320 * std::pow(10.0, 38 * l); }), Flow::gradient);
  EXPECT_EQ(fit.left_out, 0);
  EXPECT_NEAR(fit.exponential->slope, -38 * std::numbers::ln10, 1e-3);
}

TEST(FitProfile, SaysNothingWhereNothingFollows) {
  EXPECT_FALSE(fit_profile({}, Flow::gradient).exponential);
  const std::vector<double> one{2};
  EXPECT_FALSE(fit_profile(one, Flow::gradient).exponential);
  EXPECT_EQ(fit_profile(one, Flow::gradient).ratio, 1);
  const std::vector<double> two{2, 8};
  EXPECT_TRUE(fit_profile(two, Flow::gradient).exponential);
  EXPECT_FALSE(fit_profile(two, Flow::gradient).better());
  const std::vector<double> ends_in_zero{2, 1, 0};
  EXPECT_FALSE(fit_profile(ends_in_zero, Flow::gradient).ratio);
  const std::vector<double> starts_at_zero{0, 1, 2};
  EXPECT_EQ(fit_profile(starts_at_zero, Flow::gradient).ratio, 0);
}

/// Three seeds whose rates are rate − spread, rate, rate + spread a block of distance.
DepthProfile over_seeds(std::int64_t blocks, double rate, double spread, Flow flow) {
  std::vector<std::vector<double>> seeds;
  for (const double offset : {-spread, 0.0, spread})
    seeds.push_back(profile(blocks, [&](double l) {
      const double distance = flow == Flow::gradient ? static_cast<double>(blocks) - l + 1 : l;
      return std::exp((rate + offset) * distance);
    }));
  return depth_profile(seeds, flow);
}

TEST(DepthProfile, GivesStudentsIntervalOverSeeds) {
  const DepthProfile result = over_seeds(10, -0.2, 0.01, Flow::gradient);
  EXPECT_EQ(result.seeds, 3);
  EXPECT_NEAR(*result.rate.mean, -0.2, 1e-12);
  // t(0.975; 2) = 4.302653, s = 0.01, n = 3
  EXPECT_NEAR(result.rate.interval->high, -0.2 + 4.302653 * 0.01 / std::sqrt(3), 1e-7);
  EXPECT_EQ(result.better, ProfileForm::exponential);
}

TEST(DepthProfile, VerdictsFollowTheWholeChange) {
  const auto gradient = [](double change, double spread) {
    return std::string(name_of(over_seeds(20, change / 20, spread / 20, Flow::gradient).verdict, Flow::gradient));
  };
  const auto activation = [](double change, double spread) {
    return std::string(name_of(over_seeds(20, change / 20, spread / 20, Flow::activation).verdict, Flow::activation));
  };
  EXPECT_EQ(gradient(-2.4, 0.01), "vanishing");
  EXPECT_EQ(gradient(-2.4, 0.1), "falling");  // the interval reaches above −ln 10
  EXPECT_EQ(gradient(-2.2, 0.01), "falling");
  EXPECT_EQ(gradient(2.4, 0.01), "exploding");
  EXPECT_EQ(gradient(2.2, 0.01), "rising");
  EXPECT_EQ(gradient(0.1, 0.1), "flat");
  EXPECT_EQ(gradient(0, 0), "flat");
  EXPECT_EQ(activation(-2.4, 0.01), "shrinking");
  EXPECT_EQ(activation(2.4, 0.01), "growing");
  EXPECT_EQ(activation(1, 0.01), "rising");
  EXPECT_EQ(activation(-1, 0.01), "falling");
  EXPECT_EQ(activation(0.1, 0.1), "flat");
}

TEST(DepthProfile, TwoSeedsDecideNothing) {
  const std::vector<std::vector<double>> seeds(2, profile(10, [](double l) { return std::exp(l); }));
  const DepthProfile result = depth_profile(seeds, Flow::gradient);
  EXPECT_EQ(result.verdict, ProfileVerdict::undecided);
  EXPECT_NEAR(*result.rate.mean, -1, 1e-12);
  EXPECT_TRUE(result.rate.interval);
}

TEST(DepthProfile, SeedsWithoutFitAreNotCounted) {
  std::vector<std::vector<double>> seeds(3, profile(4, [](double l) { return std::exp(l); }));
  seeds.push_back({0, 0, 0, 1});
  const DepthProfile result = depth_profile(seeds, Flow::activation);
  EXPECT_EQ(result.seeds, 3);
  EXPECT_EQ(result.left_out, 3);
  EXPECT_EQ(depth_profile({}, Flow::activation).verdict, ProfileVerdict::undecided);
}

TEST(DepthProfile, SeedsThatAreNotFiniteHaveNoFitAndAreSaidWhereNoOtherIsThere) {
  std::vector<std::vector<double>> seeds(3, profile(4, [](double l) { return std::exp(l); }));
  for (std::vector<double>& seed : seeds) {
    EXPECT_NE(depth_profile(seeds, Flow::activation).verdict, ProfileVerdict::not_finite);
    seed.back() = std::numeric_limits<double>::infinity();
  }
  const DepthProfile result = depth_profile(seeds, Flow::activation);
  EXPECT_EQ(result.verdict, ProfileVerdict::not_finite);
  EXPECT_EQ(name_of(result.verdict, Flow::gradient), "not finite");
  EXPECT_EQ(result.seeds, 0);
  EXPECT_EQ(result.not_finite, 3);
  EXPECT_FALSE(result.rate.mean);
}

TEST(DepthProfile, RefusesDifferentDepths) {
  const std::vector<std::vector<double>> seeds{{1, 2}, {1, 2, 3}};
  EXPECT_THROW(depth_profile(seeds, Flow::gradient), std::logic_error);
}

}  // namespace
}  // namespace gradflow
