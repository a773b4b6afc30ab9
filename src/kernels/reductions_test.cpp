#include "kernels/reductions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace gradflow {
namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

TEST(SumOfSquares, CountsEveryElementAtEveryLength) {
  for (std::size_t count = 0; count < 40; ++count) {
    std::vector<float> values(count);
    double expected = 0;
    for (std::size_t i = 0; i < count; ++i) {
      values[i] = static_cast<float>(i + 1);
      expected += static_cast<double>((i + 1) * (i + 1));
    }
    EXPECT_EQ(sum_of_squares(values.data(), count), expected) << count;
    const std::vector<double> doubles(values.begin(), values.end());
    EXPECT_EQ(sum_of_squares(doubles.data(), count), expected) << count;
  }
}

TEST(SumOfSquares, NeitherUnderflowsNorOverflows) {
  // In float32 these squares are 0 and inf.
  const std::vector<float> tiny(100, 1e-30f), huge(100, 1e30f);
  EXPECT_NEAR(std::sqrt(sum_of_squares(tiny.data(), tiny.size())) / 1e-29, 1, 1e-6);
  EXPECT_NEAR(std::sqrt(sum_of_squares(huge.data(), huge.size())) / 1e31, 1, 1e-6);
}

TEST(SumOfSquares, DoesNotHideNonFiniteValues) {
  EXPECT_TRUE(std::isnan(sum_of_squares(std::vector<float>{1, nan, 3}.data(), 3)));
  EXPECT_EQ(sum_of_squares(std::vector<float>{1, -inf, 3}.data(), 3), std::numeric_limits<double>::infinity());
}

TEST(CountNonfinite, CountsNanAndBothInfinities) {
  EXPECT_EQ(count_nonfinite(std::vector<float>{1, nan, inf, -inf, 0, 1e38f}.data(), 6), 3);
  EXPECT_EQ(count_nonfinite(std::vector<double>{1, 2, std::nan("")}.data(), 3), 1);
}

TEST(RowSums, AreThoseOfTheDefinition) {
  for (const std::size_t features : {1u, 3u, 8u, 13u, 32u}) {
    const std::size_t rows = 5;
    std::vector<float> values(rows * features);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i)) + 2;
    double sum = 0, squares = 0, variance_sum = 0;
    for (std::size_t r = 0; r < rows; ++r) {
      double mean = 0, deviation = 0;
      for (std::size_t f = 0; f < features; ++f) mean += values[r * features + f] / static_cast<double>(features);
      for (std::size_t f = 0; f < features; ++f) {
        const double x = values[r * features + f];
        sum += x;
        squares += x * x;
        deviation += (x - mean) * (x - mean);
      }
      variance_sum += deviation / static_cast<double>(features);
    }
    const RowSums measured = row_sums(values.data(), rows, features, nullptr);
    EXPECT_EQ(measured.rows, 5);
    EXPECT_NEAR(measured.sum, sum, 1e-12 * std::abs(sum));
    EXPECT_NEAR(measured.squares, squares, 1e-12 * squares);
    EXPECT_NEAR(measured.variance_sum, variance_sum, 1e-12 * squares);
  }
}

TEST(RowSums, KeepTheVarianceOfALargeMean) {
  // Σx² − n·mean² in float32 is pure rounding here.
  const std::vector<float> values{10000.5f, 9999.5f, 10000.5f, 9999.5f};
  EXPECT_DOUBLE_EQ(row_sums(values.data(), 1, 4, nullptr).variance_sum, 0.25);
}

TEST(RowSums, LeaveOutRowsThatAreNotReal) {
  const std::vector<float> values{1, 2, 100, 200, 3, 4};
  const bool real[] = {true, false, true};
  const RowSums sums = row_sums(values.data(), 3, 2, real);
  EXPECT_EQ(sums.rows, 2);
  EXPECT_EQ(sums.sum, 10);
  EXPECT_EQ(sums.squares, 30);
}

}  // namespace
}  // namespace gradflow
