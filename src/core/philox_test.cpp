#include "core/philox.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

namespace gradflow {
namespace {

using Block = std::array<std::uint32_t, 4>;

// The known answers that Random123 publishes for philox4x32 with ten rounds.
TEST(Philox, MatchesThePublishedVectors) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Fnv1a, MatchesThePublishedVectors) {
  EXPECT_EQ(fnv1a32(""), 0x811c9dc5u);
  EXPECT_EQ(fnv1a32("a"), 0xe40c292cu);
  EXPECT_EQ(fnv1a32("foobar"), 0xbf9cf968u);
  EXPECT_EQ(fnv1a64(""), 0xcbf29ce484222325u);
  EXPECT_EQ(fnv1a64("a"), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(fnv1a64("foobar"), 0x85944171f73967e8u);
}

TEST(Fnv1a, TakesBytesAboveAsciiAsUnsigned) { EXPECT_EQ(fnv1a32("\xff"), (0x811c9dc5u ^ 0xffu) * 0x01000193u); }

TEST(RandomStream, IsTheBlockOfSeedNameAndIndex) {
  const std::uint64_t seed = 0x299f31d0a4093822, index = 0x85a308d3243f6a88, hash = fnv1a64("weights");
  const Block words =
      philox4x32({0x243f6a88, 0x85a308d3, static_cast<std::uint32_t>(hash), static_cast<std::uint32_t>(hash >> 32)},
                 {0xa4093822, 0x299f31d0});
  EXPECT_EQ(RandomStream(seed, "weights").bits(index), (std::uint64_t{words[1]} << 32) | words[0]);
}

TEST(RandomStream, DependsOnNothingButSeedNameAndIndex) {
  const RandomStream stream(7, "a");
  const std::uint64_t later = stream.bits(1000);
  for (std::uint64_t i = 0; i < 10; ++i) (void)stream.normal(i);
  EXPECT_EQ(stream.bits(1000), later);
  EXPECT_EQ(RandomStream(7, "a").bits(1000), later);
  EXPECT_NE(RandomStream(8, "a").bits(1000), later);
  EXPECT_NE(RandomStream(7 + (std::uint64_t{1} << 32), "a").bits(1000), later);
  EXPECT_NE(RandomStream(7, "b").bits(1000), later);
}

TEST(RandomStream, GoesOnBeyondFourBillionValues) {
  const RandomStream stream(1, "long");
  std::set<std::uint64_t> seen;
  for (std::uint64_t i = 0; i < 1000; ++i)
    for (const std::uint64_t start : {std::uint64_t{0}, std::uint64_t{1} << 32, std::uint64_t{1} << 63})
      seen.insert(stream.bits(start + i));
  EXPECT_EQ(seen.size(), 3000u);
}

/// √n times the Kolmogorov-Smirnov distance; 1.95 is exceeded with probability 0.001.
template <class Distribution>
double kolmogorov(std::vector<double> values, Distribution distribution) {
  std::sort(values.begin(), values.end());
  const double n = static_cast<double>(values.size());
  double distance = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double expected = distribution(values[i]);
    distance = std::max({distance, expected - static_cast<double>(i) / n, static_cast<double>(i + 1) / n - expected});
  }
  return std::sqrt(n) * distance;
}

TEST(RandomStream, UniformIsUniformInTheHalfOpenUnitInterval) {
  const RandomStream stream(3, "uniform");
  std::vector<double> values;
  for (std::uint64_t i = 0; i < 200'000; ++i) values.push_back(stream.uniform(i));
  EXPECT_GE(*std::min_element(values.begin(), values.end()), 0);
  EXPECT_LT(*std::max_element(values.begin(), values.end()), 1);
  EXPECT_LT(kolmogorov(values, [](double x) { return x; }), 1.95);
}

TEST(RandomStream, NormalIsStandardNormal) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    const RandomStream stream(seed, "normal");
    const int n = 200'000;
    std::vector<double> values;
    double sum = 0, squares = 0, cubes = 0, fourths = 0;
    for (std::uint64_t i = 0; i < n; ++i) {
      const double x = stream.normal(i);
      ASSERT_TRUE(std::isfinite(x));
      values.push_back(x);
      sum += x, squares += x * x, cubes += x * x * x, fourths += x * x * x * x;
    }
    // Four standard errors of each moment: √(1, 2, 15, 96)/√n.
    const double error = 4 / std::sqrt(n);
    EXPECT_NEAR(sum / n, 0, error);
    EXPECT_NEAR(squares / n, 1, error * std::sqrt(2.0));
    EXPECT_NEAR(cubes / n, 0, error * std::sqrt(15.0));
    EXPECT_NEAR(fourths / n, 3, error * std::sqrt(96.0));
    EXPECT_LT(kolmogorov(values, [](double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }), 1.95);
  }
}

TEST(RandomStream, StreamsAreUncorrelated) {
  const RandomStream first(1, "block.1.q"), other_name(1, "block.1.k"), other_seed(2, "block.1.q");
  const int n = 100'000;
  double names = 0, seeds = 0, neighbours = 0;
  for (std::uint64_t i = 0; i < n; ++i) {
    const double x = first.normal(i);
    names += x * other_name.normal(i);
    seeds += x * other_seed.normal(i);
    neighbours += x * first.normal(i + 1);
  }
  const double bound = 4 / std::sqrt(n);
  EXPECT_LT(std::abs(names / n), bound);
  EXPECT_LT(std::abs(seeds / n), bound);
  EXPECT_LT(std::abs(neighbours / n), bound);
}

TEST(RandomStream, BelowIsEvenAndStaysBelow) {
  const RandomStream stream(5, "below");
  const std::uint64_t bound = 7;
  const int n = 140'000;
  std::vector<int> counts(bound);
  for (std::uint64_t i = 0; i < n; ++i) {
    const std::uint64_t value = stream.below(bound, i);
    ASSERT_LT(value, bound);
    ++counts[value];
  }
  double chi_squared = 0;
  const double expected = static_cast<double>(n) / static_cast<double>(bound);
  for (const int count : counts) chi_squared += (count - expected) * (count - expected) / expected;
  EXPECT_LT(chi_squared, 22.46);  // six degrees of freedom, probability 0.001
  EXPECT_EQ(stream.below(1, 12), 0u);
}

TEST(RandomStream, BelowReachesLargeBounds) {
  const RandomStream stream(6, "below");
  const std::uint64_t bound = std::uint64_t{3} << 62;  // a modulo would give the lower third twice as often
  int upper = 0;
  for (std::uint64_t i = 0; i < 30'000; ++i) upper += stream.below(bound, i) >= (std::uint64_t{1} << 62);
  EXPECT_NEAR(upper, 20'000, 4 * std::sqrt(30'000.0 * 2 / 9));
}

}  // namespace
}  // namespace gradflow
