#include "report/svg_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <regex>
#include <string>

#include "report/pictures.h"
#include "testing/made_report.h"

namespace gradflow {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr double nan = NAN;

ChartLine line(const std::string& name, std::vector<double> mean, Ink ink = {}) {
  return {name, ink, mean, mean, mean};
}

Chart chart_of(std::vector<ChartLine> lines) {
  Chart chart{.id = "a",
              .title = "T <1>",
              .description = "D",
              .y_label = "y",
              .x_label = "step",
              .x_name = "step",
              .low = 0,
              .high = 10};
  chart.panels.push_back(
      {.title = "Depth 4", .x = {1, 2, 3}, .lines = std::move(lines), .references = {{"H", 5, true}}});
  return chart;
}

TEST(Svg, NamesLinesWhereTheyEndAndWhatLiesOffTheScale) {
  const std::string text = svg(chart_of({line("pre", {1, 2, 3}), line("far", {1, 20, 300}, {2, false})}));
  EXPECT_THAT(text, HasSubstr(">pre</text>"));
  EXPECT_THAT(text, HasSubstr("off scale ↑ far 300, step 3</text>"));
  EXPECT_THAT(text, HasSubstr("H 5.000"));
  EXPECT_THAT(text, HasSubstr("T &lt;1&gt;"));
  EXPECT_THAT(text, Not(HasSubstr("nan")));
  EXPECT_THAT(text, Not(HasSubstr("inf")));
}

/// Where the name of a reference line stands: its anchor and whether it is above the line.
struct NameAt {
  std::string anchor;
  bool above;
};
NameAt name_at(const std::string& svg, const std::string& name) {
  std::smatch text, line;
  const std::regex name_place("<text x=\"[0-9.]+\" y=\"([0-9.]+)\" text-anchor=\"([a-z]+)\"[^>]*>" + name);
  const std::regex line_place("<path d=\"M[0-9.]+ ([0-9.]+)h[0-9.]+\"[^>]*stroke-dasharray=\"5 4\"");
  EXPECT_TRUE(std::regex_search(svg, text, name_place));
  EXPECT_TRUE(std::regex_search(svg, line, line_place));
  return {text[2], std::stod(text[1]) < std::stod(line[1])};
}

TEST(Svg, TheNameOfAReferenceLineCoversNoEndOfACurve) {
  EXPECT_EQ(name_at(svg(chart_of({line("learns", {9, 5, 1})})), "H").anchor, "end") << "free: at the right, above";
  // A curve that is stuck ends a little above the line, where the name would stand.
  NameAt at = name_at(svg(chart_of({line("stuck", {9, 5.5, 5.5})})), "H");
  EXPECT_TRUE(at.anchor == "start" || !at.above);
  at = name_at(svg(chart_of({line("stuck", {9, 5.5, 5.5}), line("below", {9, 4.5, 4.5})})), "H");
  EXPECT_EQ(at.anchor, "start");
  at = name_at(svg(chart_of({line("a", {5.5, 5.5, 5.5}), line("b", {9, 4.5, 4.5}), line("c", {4.5, 9, 9})})), "H");
  EXPECT_EQ(at.anchor, "start") << "beginnings are covered rather than ends";
}

TEST(Svg, GapsAreSkippedAndTheEighthHueIsDashed) {
  const std::string text = svg(chart_of({line("a", {nan, 2, nan}), line("b", {1, nan, 3}, {1, true})}));
  EXPECT_THAT(text, HasSubstr("stroke-dasharray=\"6 3\""));
  EXPECT_THAT(text, HasSubstr("stroke-width=\"5\"")) << "one point is a dot";
  EXPECT_THAT(text, Not(HasSubstr("nan")));
}

TEST(Svg, HugeNumbersStayOnThePaper) {
  Chart chart = chart_of({line("a", {1e-300, 1, 1e300}), line("zero", {0, 0, 0})});
  chart.logarithmic = true;
  chart.low = 0.1;
  const std::string text = svg(chart);
  EXPECT_THAT(text, Not(HasSubstr("e+")));
  EXPECT_THAT(text, HasSubstr("off scale ↑ a 1e300"));
}

TEST(Svg, MorePanelsStandInRowsOfTwo) {
  Chart chart = chart_of({line("a", {1, 2, 3})});
  EXPECT_THAT(svg(chart), HasSubstr("viewBox=\"0 0 760 330\""));
  for (int i = 0; i < 4; ++i) chart.panels.push_back(chart.panels.front());
  EXPECT_THAT(svg(chart), HasSubstr("viewBox=\"0 0 760 886\""));
}

TEST(Ticks, AreRound) {
  EXPECT_THAT(round_ticks(1, 200, 5), ElementsAre(50, 100, 150, 200));
  EXPECT_THAT(round_ticks(0.97, 4.9, 5), ElementsAre(1, 2, 3, 4));
  for (const double high : {7.0, 24.0, 64.0, 300.0, 1000.0, 12345.0}) {
    const std::vector<double> ticks = round_ticks(1, high, 5);
    ASSERT_GE(ticks.size(), 2u) << high;
    const double step = ticks[1] - ticks[0], digit = step / std::pow(10, std::floor(std::log10(step) + 1e-9));
    EXPECT_TRUE(std::abs(digit - 1) < 1e-9 || std::abs(digit - 2) < 1e-9 || std::abs(digit - 5) < 1e-9) << step;
  }
  EXPECT_THAT(round_ticks(3, 3, 5), ElementsAre());
  EXPECT_THAT(decade_ticks(0.01, 100), ElementsAre(0.01, 0.1, 1, 10, 100));
  EXPECT_LE(decade_ticks(1e-60, 1e30).size(), 8u);
}

TEST(Pictures, OneFileForEverySettingOfTheFurtherAxes) {
  std::vector<testing::MadeRun> runs = testing::two_placements(1);
  EXPECT_EQ(static_pictures(testing::made_report(runs)).size(), 3u) << "no run has an update ratio";
  const std::size_t half = runs.size();
  for (std::size_t i = 0; i < half; ++i) {
    runs.push_back(runs[i]);
    runs.back().config.train.learning_rate = 0.5;
  }
  const std::vector<Picture> pictures = static_pictures(testing::made_report(runs));
  ASSERT_EQ(pictures.size(), 6u);
  EXPECT_EQ(pictures[0].file, "loss-learning_rate=0.001.svg");
  EXPECT_EQ(pictures[3].file, "loss-learning_rate=0.5.svg");
  EXPECT_EQ(pictures[3].choice, "learning rate 0.5");
}

TEST(Pictures, DivergedRunsAreNamedAndDoNotStretchTheAxis) {
  std::vector<testing::MadeRun> runs = testing::two_placements(1);
  for (testing::MadeRun& run : runs)
    if (run.config.model.placement == Placement::post) run.status = RunStatus::diverged, run.gradient_rate = 20;
  const std::vector<Picture> pictures = static_pictures(testing::made_report(runs));
  EXPECT_THAT(pictures[1].svg, HasSubstr("diverged: post"));
  EXPECT_THAT(pictures[1].svg, HasSubstr(">10</text>"));
}

}  // namespace
}  // namespace gradflow
