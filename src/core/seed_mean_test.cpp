#include "core/seed_mean.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace gradflow {
namespace {

TEST(SeedMean, HasAnIntervalFromTheFewestSeedsOn) {
  const std::vector<double> none, two{1, 3}, three{1, 2, 3};
  EXPECT_FALSE(mean_over_seeds(none, 2).mean);
  EXPECT_EQ(mean_over_seeds(two, 3).mean, 2);
  EXPECT_FALSE(mean_over_seeds(two, 3).interval);
  EXPECT_TRUE(mean_over_seeds(two, 2).interval);
  // t(0.975, 2) = 4.302653, s = 1.
  EXPECT_NEAR(mean_over_seeds(three, 3).interval->high, 2 + 4.302653 / std::sqrt(3.0), 1e-6);
}

TEST(SeedMean, OfRatiosIsThatOfTheirLogarithms) {
  const std::vector<double> ratios{1, 10, 100}, vanished{1, 10, 0},
      exploded{1, std::numeric_limits<double>::infinity()};
  const SeedMean over = geometric_mean_over_seeds(ratios, 3);
  EXPECT_NEAR(*over.mean, 10, 1e-12);
  EXPECT_NEAR(over.interval->low * over.interval->high, 100, 1e-9);
  EXPECT_FALSE(geometric_mean_over_seeds(vanished, 2).mean);
  EXPECT_FALSE(geometric_mean_over_seeds(exploded, 2).mean);
}

}  // namespace
}  // namespace gradflow
