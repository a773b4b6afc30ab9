#include "claims/criterion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace gradflow {
namespace {

using enum ClaimVerdict;
using ::testing::HasSubstr;

const Criterion gains{Region::above(0.2), Region::below(0)};
const Criterion equal{Region::between(-0.05, 0.05), Region::outside(-0.2, 0.2)};

ClaimVerdict verdict(const std::vector<double>& values, const Criterion& criterion,
                     Averaging averaging = Averaging::arithmetic) {
  return judge(values, criterion, averaging).verdict;
}

TEST(Criterion, TheWholeIntervalDecides) {
  EXPECT_EQ(verdict({0.4, 0.41, 0.42}, gains), reproduced);
  EXPECT_EQ(verdict({-0.4, -0.41, -0.42}, gains), refuted);
  EXPECT_EQ(verdict({0.1, 0.11, 0.12}, gains), not_reproduced) << "neither above 0.2 nor below 0";
  EXPECT_EQ(verdict({0.19, 0.2, 0.21}, gains), undecided) << "the interval holds the bound";
  EXPECT_EQ(verdict({-0.9, 0.4, 0.9}, gains), undecided);
}

TEST(Criterion, TwoBounds) {
  EXPECT_EQ(verdict({0.01, 0.0, -0.01}, equal), reproduced);
  EXPECT_EQ(verdict({0.1, 0.101, 0.102}, equal), not_reproduced);
  EXPECT_EQ(verdict({0.3, 0.301, 0.302}, equal), refuted);
  EXPECT_EQ(verdict({-0.3, -0.301, -0.302}, equal), refuted);
  EXPECT_EQ(verdict({0.04, 0.05, 0.06}, equal), undecided);
  EXPECT_EQ(verdict({-1.0, 0.0, 1.0}, equal), undecided) << "an interval that holds the whole region is too wide";
}

TEST(Criterion, BoundsOfAHalfLineDoNotCountAndThoseOfAnIntervalDo) {
  EXPECT_EQ(verdict({0.2, 0.2, 0.2}, gains), not_reproduced);
  EXPECT_EQ(verdict({0.05, 0.05, 0.05}, equal), reproduced);
  EXPECT_EQ(verdict({0, 0, 0}, {Region::between(0, 0), Region::above(1e-6)}), reproduced);
}

TEST(Criterion, FewerThanThreeSeedsDecideNothing) {
  const ClaimJudgement one = judge(std::vector{5.0}, gains, Averaging::arithmetic);
  EXPECT_EQ(one.verdict, undecided);
  EXPECT_EQ(one.value, 5.0);
  EXPECT_FALSE(one.interval.has_value());
  EXPECT_THAT(one.reason, HasSubstr("needs 3"));
  EXPECT_EQ(verdict({5, 5}, gains), undecided);
  EXPECT_EQ(verdict({}, gains), undecided);
  EXPECT_EQ(verdict({5}, gains, Averaging::exact), reproduced) << "what draws nothing needs no seeds";
}

TEST(Criterion, TheIntervalIsStudents) {
  const ClaimJudgement result = judge(std::vector{1.0, 2.0, 3.0}, gains, Averaging::arithmetic);
  EXPECT_DOUBLE_EQ(result.value.value(), 2);
  EXPECT_NEAR(result.interval->low, 2 - 4.302652729911275 / std::sqrt(3), 1e-9);
  EXPECT_NEAR(result.interval->high, 2 + 4.302652729911275 / std::sqrt(3), 1e-9);
}

TEST(Criterion, AGeometricMeanAveragesLogarithms) {
  const ClaimJudgement result =
      judge(std::vector{1.0, 10.0, 100.0}, {Region::above(0.001), Region::below(0)}, Averaging::geometric);
  EXPECT_NEAR(result.value.value(), 10, 1e-12);
  EXPECT_NEAR(std::log(result.interval->high / 10), std::log(10 / result.interval->low), 1e-9);
  EXPECT_EQ(verdict({1, 2, 0}, gains, Averaging::geometric), undecided) << "0 has no logarithm";
}

TEST(Criterion, ANumberThatIsNotFiniteDecidesNothing) {
  const ClaimJudgement result =
      judge(std::vector{1.0, std::numeric_limits<double>::infinity(), 1.0}, gains, Averaging::arithmetic);
  EXPECT_EQ(result.verdict, undecided);
  EXPECT_THAT(result.reason, HasSubstr("inf"));
}

TEST(Criterion, SaysHowManySeedsWouldDecide) {
  const ClaimJudgement result = judge(std::vector{0.2, 0.3, 0.4}, gains, Averaging::arithmetic);
  ASSERT_EQ(result.verdict, undecided);
  EXPECT_THAT(result.reason, HasSubstr("with this mean and spread 7 seeds would decide"));
}

TEST(Region, KnowsWhatItSharesWithAnother) {
  EXPECT_TRUE(Region::above(0).overlaps(Region::below(0.1)));
  EXPECT_FALSE(Region::above(0).overlaps(Region::below(0)));
  EXPECT_FALSE(Region::between(-1, 1).overlaps(Region::outside(-1, 1)));
  EXPECT_TRUE(Region::between(-1, 1).overlaps(Region::outside(-0.5, 0.5)));
  EXPECT_FALSE(Region::below(0.9).overlaps(Region::between(1, 1)));
  EXPECT_TRUE(Region::below(1.1).overlaps(Region::between(1, 1)));
}

TEST(RegionText, ShowsNarrowBoundsAsTheyAre) {
  EXPECT_EQ(Region::between(2.21336, 2.21337).words(), "from 2.21336 to 2.21337");
}

}  // namespace
}  // namespace gradflow
