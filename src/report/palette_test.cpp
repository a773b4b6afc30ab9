#include "report/palette.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "report/assets.h"

namespace gradflow {
namespace {

using ::testing::ElementsAre;
using Colour = std::array<double, 3>;

/// "#1553c9" as linear red, green, blue.
Colour linear(const std::string& hex) {
  Colour colour{};
  for (std::size_t i = 0; i < 3; ++i) {
    const double value = std::stoi(hex.substr(1 + 2 * i, 2), nullptr, 16) / 255.0;
    colour[i] = value <= 0.04045 ? value / 12.92 : std::pow((value + 0.055) / 1.055, 2.4);
  }
  return colour;
}

double contrast(const Colour& a, const Colour& b) {
  const auto luminance = [](const Colour& c) { return 0.2126 * c[0] + 0.7152 * c[1] + 0.0722 * c[2]; };
  const auto [low, high] = std::minmax({luminance(a), luminance(b)});
  return (high + 0.05) / (low + 0.05);
}

using Matrix = std::array<Colour, 3>;

Colour times(const Matrix& matrix, const Colour& colour) {
  Colour result{};
  for (std::size_t i = 0; i < 3; ++i)
    result[i] = matrix[i][0] * colour[0] + matrix[i][1] * colour[1] + matrix[i][2] * colour[2];
  return result;
}

// Machado, Oliveira and Fernandes 2009, severity 1.
const Matrix protanopia = {
    {{.152286, 1.052583, -.204868}, {.114503, .786281, .099216}, {-.003882, -.048116, 1.051998}}};
const Matrix deuteranopia = {{{.367322, .860646, -.227968}, {.280085, .672501, .047413}, {-.011820, .042940, .968881}}};
const Matrix tritanopia = {{{1.255528, -.076749, -.178779}, {-.078411, .930809, .147602}, {.004733, .691367, .303900}}};

/// OKLab (Ottosson 2020).
Colour perceived(const Colour& colour) {
  const Matrix cones = {{{.4122214708, .5363325363, .0514459929},
                         {.2119034982, .6806995451, .1073969566},
                         {.0883024619, .2817188376, .6299787005}}};
  const Matrix axes = {{{.2104542553, .7936177850, -.0040720468},
                        {1.9779984951, -2.4285922050, .4505937099},
                        {.0259040371, .7827717662, -.8086757660}}};
  Colour roots = times(cones, colour);
  for (double& root : roots) root = std::cbrt(root);
  return times(axes, roots);
}

/// The smallest distance × 100 between two of the first five hues as such eyes see them.
double closest(const std::vector<std::string>& hues, const Matrix& eyes) {
  std::vector<Colour> seen;
  for (const std::string& hue : hues) {
    Colour colour = times(eyes, linear(hue));
    for (double& part : colour) part = std::clamp(part, 0.0, 1.0);
    seen.push_back(perceived(colour));
  }
  double least = 1e9;
  for (std::size_t i = 0; i < seen.size(); ++i)
    for (std::size_t k = i + 1; k < seen.size(); ++k)
      least =
          std::min(least, 100 * std::hypot(seen[i][0] - seen[k][0], seen[i][1] - seen[k][1], seen[i][2] - seen[k][2]));
  return least;
}

/// --s1 … --s7 of report.css, first for light pages, then for dark ones.
std::vector<std::vector<std::string>> hues_of_the_page() {
  std::vector<std::vector<std::string>> both;
  const std::string style(report_assets().style);
  std::size_t at = 0;
  for (int mode = 0; mode < 2; ++mode) {
    std::vector<std::string> hues;
    for (int slot = 1; slot <= ink_slots; ++slot) {
      at = style.find("--s" + std::to_string(slot) + ":", at) + 5;
      hues.push_back(style.substr(at, 7));
    }
    both.push_back(hues);
  }
  return both;
}

TEST(Palette, PageAndStaticPicturesHaveTheSameHues) {
  const std::vector<std::string> light = hues_of_the_page()[0];
  for (int slot = 1; slot <= ink_slots; ++slot)
    EXPECT_EQ(light[static_cast<std::size_t>(slot - 1)], light_colour({slot, false}));
}

TEST(Palette, TheFiveKeptHuesAreReadableAndApartForEveryEye) {
  const std::vector<std::string> pages = {"#ffffff", "#14171a"};
  const std::vector<std::vector<std::string>> both = hues_of_the_page();
  for (std::size_t mode = 0; mode < 2; ++mode) {
    const std::vector<std::string> five(both[mode].begin(), both[mode].begin() + 5);
    for (const std::string& hue : five) EXPECT_GE(contrast(linear(hue), linear(pages[mode])), 4.8) << hue;
    EXPECT_GE(closest(five, protanopia), 9.25);
    EXPECT_GE(closest(five, deuteranopia), 9.25);
    EXPECT_GE(closest(five, tritanopia), 5.99);
  }
}

TEST(Inks, KnownNamesKeepTheirHueTheOthersTakeWhatIsFree) {
  const std::vector<std::string> names = {"peri", "pre", "lns", "no norm", "keel"};
  EXPECT_THAT(inks_of(names), ElementsAre(Ink{6, false}, Ink{1, false}, Ink{7, false}, Ink{5, false}, Ink{2, false}));
}

TEST(Inks, WithoutKnownNamesFromTheFirstOnAndDashedFromTheEighth) {
  const std::vector<std::string> names = {"a", "b", "c", "d", "e", "f", "g", "h", "i"};
  const std::vector<Ink> inks = inks_of(names);
  for (int i = 0; i < 7; ++i) EXPECT_EQ(inks[static_cast<std::size_t>(i)], (Ink{i + 1, false}));
  EXPECT_EQ(inks[7], (Ink{1, true}));
  EXPECT_EQ(inks[8], (Ink{2, true}));
}

}  // namespace
}  // namespace gradflow
