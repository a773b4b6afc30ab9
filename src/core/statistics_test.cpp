#include "core/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <stdexcept>
#include <vector>

#include "core/philox.h"

namespace gradflow {
namespace {

using Values = std::vector<double>;

TEST(Median, IsTheMiddleOrTheMeanOfTheTwoMiddle) {
  EXPECT_EQ(median(Values{3, 1, 2}), 2);
  EXPECT_EQ(median(Values{4, 1, 3, 2}), 2.5);
  EXPECT_EQ(median(Values{2, 2e6, 2, 2, 20}), 2);
  EXPECT_EQ(median(Values{5}), 5);
  EXPECT_FALSE(median(Values{}));
}

TEST(Median, LeavesTheInputAlone) {
  const Values values{5, 1, 4, 2, 3};
  const Values before = values;
  EXPECT_EQ(median(values), 3);
  EXPECT_EQ(values, before);
}

TEST(Mean, AndSampleDeviation) {
  const Values values{2, 4, 4, 4, 5, 5, 7, 9};
  EXPECT_DOUBLE_EQ(mean(values).value(), 5);
  EXPECT_DOUBLE_EQ(sample_std(values).value(), std::sqrt(32.0 / 7));
  EXPECT_FALSE(mean(Values{}));
  EXPECT_FALSE(sample_std(Values{1}));
}

TEST(SampleDeviation, SurvivesALargeOffset) {
  EXPECT_DOUBLE_EQ(sample_std(Values{1e9 + 1, 1e9 + 2, 1e9 + 3}).value(), 1);
}

TEST(FitLine, RecoversALine) {
  Values x, y;
  for (int i = 1; i <= 24; ++i) {
    x.push_back(i);
    y.push_back(-0.3 * i + 7);
  }
  const auto fit = fit_line(x, y).value();
  EXPECT_NEAR(fit.slope, -0.3, 1e-14);
  EXPECT_NEAR(fit.intercept, 7, 1e-13);
  EXPECT_NEAR(fit.residual_sum_of_squares, 0, 1e-26);
}

TEST(FitLine, MatchesTheNormalEquations) {
  const Values x{1, 2, 3, 4}, y{6, 5, 7, 10};  // slope 1.4, intercept 3.5, residuals 1.1, -1.3, -0.7, 0.9
  const auto fit = fit_line(x, y).value();
  EXPECT_NEAR(fit.slope, 1.4, 1e-14);
  EXPECT_NEAR(fit.intercept, 3.5, 1e-14);
  EXPECT_NEAR(fit.residual_sum_of_squares, 4.2, 1e-13);
}

TEST(FitLine, IsAbsentWhereThereIsNoLine) {
  EXPECT_FALSE(fit_line(Values{1}, Values{2}));
  EXPECT_FALSE(fit_line(Values{3, 3, 3}, Values{1, 2, 3}));
  EXPECT_THROW(fit_line(Values{1, 2}, Values{1}), std::logic_error);
}

TEST(StudentQuantile, MatchesTheTables) {
  // Two-sided 95 %, from published tables.
  EXPECT_NEAR(student_quantile(0.975, 1), 12.706205, 5e-7);
  EXPECT_NEAR(student_quantile(0.975, 2), 4.302653, 5e-7);
  EXPECT_NEAR(student_quantile(0.975, 3), 3.182446, 5e-7);
  EXPECT_NEAR(student_quantile(0.975, 4), 2.776445, 5e-7);
  EXPECT_NEAR(student_quantile(0.975, 5), 2.570582, 5e-7);
  EXPECT_NEAR(student_quantile(0.975, 9), 2.262157, 5e-7);
  EXPECT_NEAR(student_quantile(0.975, 10), 2.228139, 5e-7);
  EXPECT_NEAR(student_quantile(0.975, 29), 2.045230, 5e-7);
  EXPECT_NEAR(student_quantile(0.995, 7), 3.499483, 5e-7);
}

TEST(StudentQuantile, MatchesItsClosedForms) {
  for (const double p : {1e-4, 0.01, 0.3, 0.5, 0.9, 0.999, 1 - 1e-4}) {
    const double one = std::tan(std::numbers::pi * (p - 0.5));
    const double two = (2 * p - 1) * std::sqrt(2 / (4 * p * (1 - p)));
    EXPECT_NEAR(student_quantile(p, 1), one, 1e-10 * std::abs(one) + 1e-15) << p;
    EXPECT_NEAR(student_quantile(p, 2), two, 1e-10 * std::abs(two) + 1e-15) << p;
  }
}

TEST(StudentQuantile, ApproachesTheNormalAndIsOdd) {
  EXPECT_NEAR(student_quantile(0.975, 1'000'000), 1.959966, 1e-6);
  EXPECT_EQ(student_quantile(0.25, 6), -student_quantile(0.75, 6));
  EXPECT_THROW(student_quantile(1, 3), std::logic_error);
  EXPECT_THROW(student_quantile(0.5, 0), std::logic_error);
}

TEST(StudentInterval, OfThreeSeeds) {
  const auto interval = student_interval(Values{1, 2, 3}).value();
  const double half = 4.302652729911275 / std::sqrt(3.0);
  EXPECT_DOUBLE_EQ(interval.mean, 2);
  EXPECT_NEAR(interval.low, 2 - half, 1e-9);
  EXPECT_NEAR(interval.high, 2 + half, 1e-9);
  EXPECT_FALSE(student_interval(Values{1}));
}

TEST(StudentInterval, CoversTheTruthAsOftenAsItSays) {
  const RandomStream random(11, "interval");
  const int trials = 4000;
  int covered = 0;
  for (std::uint64_t trial = 0; trial < trials; ++trial) {
    Values values;
    for (std::uint64_t i = 0; i < 5; ++i) values.push_back(10 + 3 * random.normal(5 * trial + i));
    const auto interval = student_interval(values).value();
    covered += interval.low <= 10 && 10 <= interval.high;
  }
  EXPECT_NEAR(static_cast<double>(covered) / trials, 0.95, 4 * std::sqrt(0.95 * 0.05 / trials));
}

}  // namespace
}  // namespace gradflow
