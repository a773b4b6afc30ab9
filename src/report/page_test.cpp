#include "report/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>

#include "analysis/comparison_text.h"
#include "report/comparison_table.h"
#include "report/data_block.h"
#include "report/markdown.h"
#include "testing/made_report.h"

namespace gradflow {
namespace {

using ::testing::HasSubstr;
using testing::made_report;
using testing::MadeRun;
using testing::make_run;
using ::testing::Not;
using testing::two_placements;

nlohmann::json data_of(const std::string& page) {
  const std::string open = R"(<script type="application/json" id="data">)";
  const std::size_t start = page.find(open) + open.size();
  return nlohmann::json::parse(page.substr(start, page.find("</script>", start) - start));
}

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t found = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
  return found;
}

/// Assets that say where they ended up.
const ReportAssets with_charts{"STYLE", "SCRIPT", "CHART STYLE", "CHART SCRIPT", "LICENCE"};

TEST(Page, HoldsEverySectionInOrderAndItsAssetsOnce) {
  const std::string page = page_html(made_report(two_placements(3)), with_charts);
  std::size_t last = 0;
  for (const char* heading : {"<h1>study: which placement trains at which depth?</h1>", "What trains?", "Findings",
                              "How do the placements compare?", "class=\"bar\"", "Which runs learn, and how fast?",
                              "Where does the gradient vanish?", "When and where does the gradient fade?",
                              "Does the stream grow with depth?", "What spiked, and which layer moved first?",
                              "What exactly was run?", "id=\"data\"", "LICENCE", "CHART SCRIPT", "\nSCRIPT"}) {
    const std::size_t at = page.find(heading, last);
    ASSERT_NE(at, std::string::npos) << heading;
    last = at;
  }
  EXPECT_EQ(count(page, "data-picture=\"loss\""), 2u) << "one panel a depth";
  EXPECT_THAT(page, HasSubstr("STYLE"));
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
}

TEST(Page, LoadsNothing) {
  const std::string page = page_html(made_report(two_placements(1)), report_assets());
  // src and href may point into the page only; the licence names an address, which is text.
  const std::regex reference(R"((?:src|href)\s*=\s*["']?([^#"'\s>][^"'\s>]*))");
  std::string markup = page;
  for (std::size_t at = markup.find("<script>"); at != std::string::npos; at = markup.find("<script>", at))
    markup.erase(at, markup.find("</script>", at) - at);
  EXPECT_FALSE(std::regex_search(markup, reference));
  EXPECT_THAT(markup, Not(HasSubstr("@import")));
  EXPECT_FALSE(std::regex_search(markup, std::regex(R"(url\((?!#))")));  // "url(#id)" is a part of the page itself
}

TEST(Page, NamesOfMarkupAreText) {
  const std::string name = "</script><i>&\"'";
  std::vector<MadeRun> runs = two_placements(1);
  for (MadeRun& run : runs) run.config.compute.device = "cpu";
  Report report = made_report(runs, name);
  report.command = "gradflow report '" + name + "'";
  report.groups[0].label = name;
  report.panels[0].label = name;
  report.left_out.push_back({name, name});
  const std::string page = page_html(report, with_charts);
  EXPECT_EQ(count(page, "<i>"), 0u);
  EXPECT_EQ(count(page, "</script>"), 4u) << "those of the page itself";
  EXPECT_EQ(data_of(page)["groups"][0]["label"], name);
  EXPECT_EQ(data_of(page)["study"], name);
  const std::string statically = page_html(report, with_charts.without_charts());
  EXPECT_EQ(count(statically, "<i>"), 0u);
}

TEST(Page, WithoutUplotTheLinePicturesAreStatic) {
  const std::string page = page_html(made_report(two_placements(2)), with_charts.without_charts());
  EXPECT_EQ(count(page, "<figure class=\"static\">"), 3u) << "loss, gradient, variance";
  EXPECT_EQ(count(page, "class=\"plot\""), 0u);
  EXPECT_EQ(count(page, "id=\"curve\""), 0u);
  EXPECT_THAT(page, Not(HasSubstr("LICENCE")));
  EXPECT_THAT(page, HasSubstr("SCRIPT")) << "heat maps need no uPlot";
  EXPECT_EQ(count(page, "<canvas tabindex"), 4u);
}

TEST(Page, WhatWasNotRecordedHasNoSection) {
  Report report = made_report(two_placements(1));
  for (ReportRun& run : report.runs) {
    run.layers.erase("stream_variance");
    run.layers.erase("stream_grad_norm");
  }
  const std::string page = page_html(report, with_charts);
  EXPECT_EQ(count(page, "id=\"variance\""), 0u);
  EXPECT_THAT(page, HasSubstr("The stream gradient, ‖∂L/∂x‖ was not recorded"));
  EXPECT_EQ(count(page, "<option value=\"stream_grad_norm\""), 0u);
  EXPECT_EQ(count(page, "id=\"gradient\""), 1u) << "of the parameters";
}

TEST(Page, EveryColumnOfTheComparisonHasItsOwnHeading) {
  std::vector<MadeRun> runs = two_placements(3);
  for (MadeRun& run : runs) {  // all stop at their first step, which is the last as well
    run.status = RunStatus::diverged;
    run.steps = 1;
  }
  const ReportTable table = comparison_table(made_report(runs));
  std::set<std::string> headings;
  for (const ReportTableColumn& column : table.columns)
    EXPECT_TRUE(headings.insert(column.heading).second) << column.heading;
  EXPECT_TRUE(headings.contains("gradient first/last block, step 1"));
  for (const auto& row : table.rows) EXPECT_EQ(row.size(), table.columns.size());
  EXPECT_EQ(comparison_table(made_report(two_placements(3))).columns.size(), table.columns.size() + 1);
}

TEST(Page, ItsNumbersReadAsThoseOfCompare) {
  const std::vector<MadeRun> runs = two_placements(3);
  const TemporaryFolder folder;
  for (std::size_t i = 0; i < runs.size(); ++i) make_run(folder / std::to_string(i), runs[i]);
  const std::string terminal =
      comparison_text(compare(make_study(find_runs(std::vector<std::string>{folder.path()}).runs)), 1000);
  const ReportTable table = comparison_table(made_report(runs));
  std::size_t compared = 0;
  for (const auto& row : table.rows)
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string& heading = table.columns[i].heading;
      if (heading != "final loss" && heading != "steps/s" && !heading.starts_with("gradient")) continue;
      ++compared;
      EXPECT_THAT(terminal, HasSubstr(row[i].text + (row[i].note.empty() ? "" : " " + row[i].note))) << heading;
    }
  EXPECT_EQ(compared, 16u);
}

TEST(Page, FurtherAxesAreSelectsInTheBar) {
  std::vector<MadeRun> runs = two_placements(1);
  const std::size_t half = runs.size();
  for (std::size_t i = 0; i < half; ++i) {
    runs.push_back(runs[i]);
    runs.back().config.train.warmup = 100;
  }
  const std::string page = page_html(made_report(runs), with_charts);
  EXPECT_THAT(
      page,
      HasSubstr("<label class=\"note\">warm-up <select class=\"choice\" data-axis=\"0\"><option value=\"0\">0</option>"
                "<option value=\"1\">100</option></select></label>"));
  EXPECT_THAT(page, HasSubstr("colspan=\"2\""));
}

TEST(Page, TheSameRunsGiveTheSameBytes) {
  const Report report = made_report(two_placements(2));
  EXPECT_EQ(page_html(report, with_charts), page_html(report, with_charts));
}

TEST(DataBlock, NumbersAreBase64OfLittleEndianFloats) {
  EXPECT_EQ(base64_float32(std::vector<double>{}), "");
  EXPECT_EQ(base64_float32(std::vector<double>{1}), "AACAPw==");
  EXPECT_EQ(base64_float32(std::vector<double>{1, -2, 0.5}), "AACAPwAAAMAAAAA/");
  EXPECT_EQ(base64_float64(std::vector<double>{1}), "AAAAAAAA8D8=");
}

TEST(DataBlock, BeyondFloat32ItIsFloat64) {
  std::vector<MadeRun> runs = two_placements(1);
  EXPECT_EQ(nlohmann::json::parse(data_block(made_report(runs), 0).json)["format"], 1);
  runs[0].gradient_rate = -40;  // e^-280 is 2e-122
  EXPECT_EQ(nlohmann::json::parse(data_block(made_report(runs), 0).json)["format"], 2);
  runs[0].gradient_rate = 0;
  runs[0].config.compute.dtype = Dtype::float64;
  EXPECT_EQ(nlohmann::json::parse(data_block(made_report(runs), 0).json)["format"], 2);
}

TEST(DataBlock, StepsAreLeftOutToStayBelowTheLimit) {
  Report report = made_report(two_placements(1));
  // 100 layer steps and 1000 steps of each run, and a spike between those that stay.
  for (ReportRun& run : report.runs) {
    run.steps.clear();
    for (std::int64_t step = 1; step <= 1000; ++step) run.steps.push_back(step);
    run.loss = run.grad_norm = run.learning_rate = std::vector<double>(1000, 1.0);
    run.layer_steps.clear();
    for (std::int64_t step = 1; step <= 100; ++step) run.layer_steps.push_back(step * 10);
    for (auto& [quantity, values] : run.layers) values.assign(100 * run.rows(), 1.0);
  }
  report.spikes.push_back({0, {.series = SpikeSeries::loss, .peak_step = 778, .peak = 4}});
  const DataBlock whole = data_block(report, 0);
  EXPECT_EQ(whole.thinned, "");
  constexpr std::size_t limit = 60'000;
  const DataBlock thinned = data_block(report, 10'000, limit);
  EXPECT_LT(thinned.json.size(), limit - 10'000 + 8'000) << "names and lists of steps are not counted";
  EXPECT_THAT(thinned.thinned, HasSubstr("curves: every"));
  EXPECT_THAT(thinned.thinned, HasSubstr("layers: every"));
  const auto json = nlohmann::json::parse(thinned.json);
  EXPECT_EQ(json["layer_steps"].front(), 10);
  EXPECT_EQ(json["layer_steps"].back(), 1000);
  EXPECT_EQ(json["steps"].front(), 1);
  EXPECT_EQ(json["steps"].back(), 1000);
  EXPECT_NE(std::find(json["steps"].begin(), json["steps"].end(), 778), json["steps"].end());
}

TEST(Markdown, HasTheSameWordsAndLinksItsPictures) {
  Report report = made_report(two_placements(3), "a|b");
  const std::vector<Picture> pictures = static_pictures(report);
  const std::string text = report_markdown(report, pictures);
  EXPECT_THAT(text, HasSubstr("# a\\|b: which placement trains at which depth?"));
  EXPECT_THAT(text, HasSubstr("| pre | ●●● learned, 1.72 ± 0.025 |"));
  EXPECT_THAT(text, HasSubstr("- **post is stuck at the unigram entropy at depths 4 and 8**"));
  EXPECT_THAT(text, HasSubstr("![Which runs learn, and how fast?](loss.svg)"));
  EXPECT_THAT(text, HasSubstr("![Where does the gradient vanish?](gradient.svg)"));
  for (std::size_t at = text.find("\n|"); at != std::string::npos; at = text.find("\n|", at + 1))
    EXPECT_EQ(text[text.find('\n', at + 1) - 1], '|');
}

}  // namespace
}  // namespace gradflow
