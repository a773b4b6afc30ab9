#include "report/number_text.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/numbers.h"

namespace gradflow {
namespace {

TEST(NumberText, ReadsAsInTheTerminal) {
  for (const double value : {1.7, 9.9996, 0.0012345, 0.00012345, 862119.0, 7.51e16, 0.0, -0.048})
    EXPECT_EQ(number_text(value, 3), significant(value, 3));
  EXPECT_EQ(number_text(1.7, 3), "1.7");
  EXPECT_EQ(number_text(NAN), "–");
  EXPECT_EQ(number_text(-INFINITY), "-inf");
  EXPECT_EQ(number_text(std::optional<double>{}), "–");
}

TEST(NumberText, SignsAreWritten) {
  EXPECT_EQ(signed_text(0.1), "+0.1");
  EXPECT_EQ(signed_text(-0.372), "−0.372");
}

TEST(MeanTextTest, HasAnIntervalFromThreeOn) {
  EXPECT_EQ(mean_text({1, 2, 3}).text(), "2 ± 2.5");
  EXPECT_EQ(mean_text({1, 2}).text(), "1.5");
  EXPECT_EQ(mean_text({}).text(), "–");
}

TEST(GeometricMean, IsThatOfPositiveNumbersOnly) {
  EXPECT_NEAR(*geometric_mean({1, 100}), 10, 1e-12);
  EXPECT_FALSE(geometric_mean({1, 0}));
  EXPECT_FALSE(geometric_mean({}));
}

TEST(Listed, ReadsAsASentence) {
  EXPECT_EQ(listed({"a"}), "a");
  EXPECT_EQ(listed({"a", "b"}), "a and b");
  EXPECT_EQ(listed({"a", "b", "c"}), "a, b and c");
  EXPECT_EQ(counted(1, "seed"), "1 seed");
  EXPECT_EQ(range_text(1.001, 1.002), "1");
}

}  // namespace
}  // namespace gradflow
