#include "kernels/reductions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "kernels/simd_level.h"

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

/// One pass over a row serves until the mean outweighs what is around it; on both sides of that the digits are there.
TEST(RowSums, AreAccurateWhateverTheMean) {
  const std::size_t rows = 7, features = 48;
  for (const double mean : {0.0, 0.1, 1.0, 5.0, 9.0, 10.0, 11.0, 100.0, 1e4}) {
    std::vector<float> values(rows * features);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>(mean + std::sin(static_cast<double>(i) * 1.7));
    long double expected = 0;
    for (std::size_t r = 0; r < rows; ++r) {
      const float* const row = values.data() + r * features;
      long double own_mean = 0, deviation = 0;
      for (std::size_t f = 0; f < features; ++f) own_mean += static_cast<long double>(row[f]) / features;
      for (std::size_t f = 0; f < features; ++f)
        deviation += (static_cast<long double>(row[f]) - own_mean) * (static_cast<long double>(row[f]) - own_mean);
      expected += deviation / features;
    }
    EXPECT_NEAR(row_sums(values.data(), rows, features, nullptr).variance_sum / static_cast<double>(expected), 1, 1e-12)
        << mean;
    const std::vector<double> doubles(values.begin(), values.end());
    EXPECT_NEAR(row_sums(doubles.data(), rows, features, nullptr).variance_sum / static_cast<double>(expected), 1,
                1e-12)
        << mean;
  }
}

TEST(RowSums, OfWhatIsNotFiniteAreNotFinite) {
  const std::vector<float> values{1, 2, inf, 4};
  EXPECT_EQ(row_sums(values.data(), 2, 2, nullptr).squares, std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(row_sums(values.data(), 2, 2, nullptr).variance_sum));
}

template <class T>
std::vector<double> all_sums(const std::vector<T>& values, std::size_t rows, std::size_t features) {
  const RowSums of_rows = row_sums(values.data(), rows, features, nullptr);
  return {sum_of_squares(values.data(), values.size()), of_rows.sum, of_rows.squares, of_rows.variance_sum};
}

TEST(Reductions, GiveTheSameBitsAtEveryLevel) {
  for (const std::size_t features : {1u, 7u, 16u, 20u, 64u})
    for (const double mean : {0.0, 30.0}) {  // one pass and two
      const std::size_t rows = 9;
      std::vector<float> floats(rows * features);
      std::vector<double> doubles(rows * features);
      for (std::size_t i = 0; i < doubles.size(); ++i)
        floats[i] = static_cast<float>(doubles[i] = mean + std::sin(static_cast<double>(i)));
      std::vector<double> of_floats, of_doubles;
      for (const std::string& level : simd_levels()) {
        force_simd_level(level);
        if (of_floats.empty()) {
          of_floats = all_sums(floats, rows, features);
          of_doubles = all_sums(doubles, rows, features);
        }
        EXPECT_EQ(all_sums(floats, rows, features), of_floats) << level << ' ' << features;
        EXPECT_EQ(all_sums(doubles, rows, features), of_doubles) << level << ' ' << features;
      }
      force_simd_level("");
    }
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
