#include "core/numbers.h"

#include <gtest/gtest.h>

#include <bit>
#include <clocale>
#include <cmath>
#include <cstdint>
#include <limits>
#include <locale>
#include <string>

#include "core/philox.h"

namespace gradflow {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

void expect_same_bits(double value) {
  const std::string text = shortest(value);
  const auto read = parse_number(text);
  ASSERT_TRUE(read) << text;
  EXPECT_EQ(std::bit_cast<std::uint64_t>(*read), std::bit_cast<std::uint64_t>(value)) << text;
}

TEST(Shortest, ReadsBackToTheSameBits) {
  const RandomStream random(1, "numbers");
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    const double value = std::bit_cast<double>(random.bits(i));
    if (std::isfinite(value)) expect_same_bits(value);
  }
}

TEST(Shortest, ReadsBackAtTheEdges) {
  for (const double value : {0.0, -0.0, std::numeric_limits<double>::denorm_min(), -std::numeric_limits<double>::min(),
                             std::numeric_limits<double>::max(), 4e-25, 0.1, 1.0 / 3, 9007199254740993.0, 1e22, 1e23})
    expect_same_bits(value);
}

TEST(Shortest, FloatsReadBackToTheSameBits) {
  const RandomStream random(2, "numbers");
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    const float value = std::bit_cast<float>(static_cast<std::uint32_t>(random.bits(i)));
    if (!std::isfinite(value)) continue;
    const auto read = parse_number(shortest(value));
    ASSERT_TRUE(read);
    EXPECT_EQ(std::bit_cast<std::uint32_t>(static_cast<float>(*read)), std::bit_cast<std::uint32_t>(value));
  }
}

TEST(Shortest, IsShort) {
  EXPECT_EQ(shortest(0.1), "0.1");
  EXPECT_EQ(shortest(0.1f), "0.1");
  EXPECT_EQ(shortest(-0.0), "-0");
  EXPECT_EQ(shortest(3.0), "3");
  EXPECT_EQ(shortest(4e-25), "4e-25");
  EXPECT_EQ(shortest(std::numeric_limits<double>::denorm_min()), "5e-324");
}

TEST(Shortest, NamesTheNonFiniteExactly) {
  EXPECT_EQ(shortest(nan), "nan");
  EXPECT_EQ(shortest(-nan), "nan");
  EXPECT_EQ(shortest(infinity), "inf");
  EXPECT_EQ(shortest(-infinity), "-inf");
  EXPECT_EQ(shortest(-std::numeric_limits<float>::quiet_NaN()), "nan");
  EXPECT_EQ(shortest(-std::numeric_limits<float>::infinity()), "-inf");
}

TEST(Shortest, WritesWholeNumbersExactly) {
  EXPECT_EQ(shortest(std::numeric_limits<std::int64_t>::max()), "9223372036854775807");
  EXPECT_EQ(shortest(std::numeric_limits<std::int64_t>::min()), "-9223372036854775808");
}

TEST(Shortest, AppendsTheSameText) {
  std::string text = "x,";
  append_shortest(text, 0.1);
  append_shortest(text, std::int64_t{-7});
  append_shortest(text, -nan);
  append_shortest(text, -infinity);
  EXPECT_EQ(text, "x,0.1-7nan-inf");
}

TEST(ParseNumber, ReadsTheNonFinite) {
  EXPECT_TRUE(std::isnan(parse_number("nan").value()));
  EXPECT_EQ(parse_number("inf"), infinity);
  EXPECT_EQ(parse_number("-inf"), -infinity);
}

TEST(ParseNumber, TakesNothingElse) {
  for (const char* text : {"", " 1", "1 ", "1,5", "1.5x", "+1", "-", "--1", ".5", "-.5", "e5", "NaN", "-nan",
                           "infinity", "0x10", "1e999", "one"})
    EXPECT_FALSE(parse_number(text)) << text;
}

TEST(ParseInteger, TakesWholeNumbersOnly) {
  EXPECT_EQ(parse_integer("-9223372036854775808"), std::numeric_limits<std::int64_t>::min());
  for (const char* text : {"", "1.0", "9223372036854775808", "1 ", "x"}) EXPECT_FALSE(parse_integer(text)) << text;
}

TEST(Significant, NeverHidesASmallNumber) {
  EXPECT_EQ(significant(9.67e-5, 3), "9.67e-5");
  EXPECT_EQ(significant(1e-5, 3), "1e-5");
  EXPECT_EQ(significant(3e-6, 1), "3e-6");
  EXPECT_EQ(significant(4e-25, 4), "4e-25");
  EXPECT_EQ(significant(0.000967, 2), "0.00097");
  EXPECT_EQ(significant(-0.001, 4), "-0.001");
}

TEST(Significant, RoundsBeforeItChoosesTheForm) {
  EXPECT_EQ(significant(9.9996e-5, 3), "0.0001");
  EXPECT_EQ(significant(999999.6, 4), "1e6");
  EXPECT_EQ(significant(1.99996, 4), "2");
}

TEST(Significant, ReadsWellInTheMiddle) {
  EXPECT_EQ(significant(1.6954, 4), "1.695");
  EXPECT_EQ(significant(53127.4, 3), "53127");
  EXPECT_EQ(significant(1234567, 3), "1.23e6");
  EXPECT_EQ(significant(100, 3), "100");
  EXPECT_EQ(significant(0, 3), "0");
  EXPECT_EQ(significant(-0.0, 3), "0");
  EXPECT_EQ(significant(nan, 3), "nan");
  EXPECT_EQ(significant(-infinity, 3), "-inf");
  EXPECT_EQ(significant(std::numeric_limits<double>::max(), 3), "1.8e308");
}

class CommaPoint : public std::numpunct<char> {
 protected:
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

void expect_points() {
  EXPECT_EQ(shortest(1234.5), "1234.5");
  EXPECT_EQ(shortest(std::int64_t{1234567}), "1234567");
  EXPECT_EQ(significant(1.25, 3), "1.25");
  EXPECT_EQ(parse_number("1234.5"), 1234.5);
  EXPECT_FALSE(parse_number("1234,5"));
}

TEST(Numbers, IgnoreTheLocaleOfCxx) {
  const std::locale before = std::locale::global(std::locale(std::locale::classic(), new CommaPoint));
  expect_points();
  std::locale::global(before);
}

TEST(Numbers, IgnoreTheLocaleOfC) {
  const std::string before = std::setlocale(LC_ALL, nullptr);
  const char* comma = nullptr;
  for (const char* name : {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "pt_BR.UTF-8", "ru_RU.UTF-8"})
    if ((comma = std::setlocale(LC_ALL, name)) != nullptr) break;
  if (comma == nullptr) GTEST_SKIP() << "no locale with a decimal comma is installed";
  expect_points();
  std::setlocale(LC_ALL, before.c_str());
}

}  // namespace
}  // namespace gradflow
