#include "analysis/verdict.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace gradflow {
namespace {

std::optional<Verdict> of_constant(double loss, double unigram_entropy) {
  return verdict_of(std::vector<double>(200, loss), unigram_entropy, false);
}

TEST(Verdict, ComparesWithTheUnigramEntropy) {
  EXPECT_EQ(of_constant(3.649, 3.95), Verdict::learned);
  EXPECT_EQ(of_constant(3.651, 3.95), Verdict::learning);
  EXPECT_EQ(of_constant(3.899, 3.95), Verdict::learning);
  EXPECT_EQ(of_constant(3.901, 3.95), Verdict::stuck);
  EXPECT_EQ(of_constant(3.999, 3.95), Verdict::stuck);
  EXPECT_EQ(of_constant(4.001, 3.95), Verdict::worse);
}

TEST(Verdict, CountsTheLastTwentySteps) {
  std::vector<double> losses(100, 5.0);
  losses.insert(losses.end(), 20, 1.0);
  EXPECT_EQ(final_loss(losses), 1.0);
  losses.push_back(3.0);
  EXPECT_EQ(final_loss(losses), 1.1);
  const std::vector<double> few{1, 2, 6};
  EXPECT_EQ(final_loss(few), 3.0);
  EXPECT_EQ(final_loss({}), std::nullopt);
}

TEST(Verdict, NonfiniteIsDiverged) {
  const std::vector<double> good(20, 1.0);
  EXPECT_EQ(verdict_of(good, 3.95, true), Verdict::diverged);
  EXPECT_EQ(verdict_of({}, std::nullopt, true), Verdict::diverged);
  const std::vector<double> bad{1, std::numeric_limits<double>::quiet_NaN()};  // went on
  EXPECT_EQ(verdict_of(bad, 3.95, false), Verdict::diverged);
}

TEST(Verdict, IsAbsentWithoutALevelToCompareWith) {
  const std::vector<double> losses(20, 1.0);
  EXPECT_EQ(verdict_of(losses, std::nullopt, false), std::nullopt);
  EXPECT_EQ(verdict_of({}, 3.95, false), std::nullopt);
}

TEST(Verdict, HasTheWordsOfTheSummary) {
  EXPECT_EQ(name_of(Verdict::diverged), "diverged");
  EXPECT_EQ(name_of(Verdict::learned), "learned");
  EXPECT_EQ(name_of(Verdict::learning), "learning");
  EXPECT_EQ(name_of(Verdict::stuck), "stuck");
  EXPECT_EQ(name_of(Verdict::worse), "worse");
}

}  // namespace
}  // namespace gradflow
