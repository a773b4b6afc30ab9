#include "report/probe_section.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "report/markdown.h"
#include "report/page.h"
#include "testing/made_probe.h"
#include "testing/made_report.h"

namespace gradflow {
namespace {

using ::testing::HasSubstr;
using testing::make_probe;

const std::string pre = "pre,layernorm,add,xavier_normal", post = "post,layernorm,add,xavier_normal";
const ReportAssets assets{"STYLE", "SCRIPT", "CHART STYLE", "CHART SCRIPT", "LICENCE"};

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t found = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
  return found;
}

Report report_of(const std::vector<std::string>& kinds) {
  const TemporaryFolder folder;
  make_probe(folder.path(), kinds);
  return make_report(Study{}, "probe", std::vector<std::string>{folder.path()});
}

TEST(ProbeSection, HasAPictureAQuantityAndItsProfilesInATable) {
  const Report report = report_of({pre, post});
  const std::vector<Picture> pictures = probe_pictures(report);
  ASSERT_EQ(pictures.size(), 2u);
  EXPECT_EQ(pictures[0].file, "probe-stream_variance.svg");
  EXPECT_EQ(count(pictures[0].svg, ">post</text>"), 2u) << "one panel a depth, a line a kind";
  EXPECT_THAT(pictures[0].svg, HasSubstr("Depth 8"));
  EXPECT_EQ(count(pictures[0].svg, "stroke-dasharray=\"2 3\""), 8u) << "both ends of the closed form of each line";
  EXPECT_THAT(pictures[0].svg, HasSubstr("dashed: closed form"));
  EXPECT_EQ(count(pictures[1].svg, "stroke-dasharray"), 0u);
  const std::string text = report_markdown(report, pictures);
  // ln 2 = 0.693, ln 3 = 1.1; 2^4·1.02 and 3^4 at block 4.
  EXPECT_THAT(text, HasSubstr("| placement | depth | block 1 | block N | first/last | rate a block | verdict | "
                              "predicted block N | predicted rate | sub-layers that agree |"));
  EXPECT_THAT(text,
              HasSubstr("| pre | 4 | 2.04 | 16.32 | 0.125 \\[0.125, 0.125\\] | 0.693 \\[0.693, 0.693\\] | growing "
                        "| 16 to 81 | 0.693 to 1.1 | 4 of 4 |"));
  EXPECT_THAT(text, HasSubstr("| post | 8 | jacobian\\_rms\\_gain | 1.5"));
  EXPECT_THAT(text, HasSubstr("](probe-stream_grad_norm.svg)"));
}

TEST(ProbeSection, TheNumbersAreThoseThatProbePrints) {
  const Report report = report_of({pre, post});
  const ReportProbe& probe = report.probes.at(0);
  const std::string page = page_html(report, assets);
  for (const ProbeTableRow& row : profile_table(probe.record.cells, probe.profiles).rows)
    for (const std::string& cell : row.cells)
      if (cell.find('[') != std::string::npos) {
        EXPECT_THAT(page, HasSubstr(">" + cell + "</td>"));
      }
}

TEST(ProbeSection, AProbeAloneMakesAPageWithoutEmptySections) {
  const std::string page = page_html(report_of({pre}), assets);
  EXPECT_THAT(page, HasSubstr("<h1>probe: what do the stacks do before training?</h1>"));
  EXPECT_THAT(page, HasSubstr("1 probe: 1 kind of stacks, 2 depths, 3 seeds"));
  EXPECT_EQ(count(page, "<section"), 1u);
  EXPECT_EQ(count(page, "<h2"), 1u);
  EXPECT_EQ(count(page, "CHART SCRIPT"), 0u);
  EXPECT_EQ(count(page, "<noscript"), 0u);
  const Report report = report_of({pre});
  const std::string text = report_markdown(report, probe_pictures(report));
  EXPECT_EQ(count(text, "\n## "), 1u);
}

TEST(ProbeSection, StandsBesideTheRuns) {
  const TemporaryFolder folder;
  testing::make_run(folder / "run", {.config = testing::transformer_config(4, Placement::pre, 1)});
  make_probe(folder / "probe", {pre});
  FoundRuns found = find_runs(std::vector<std::string>{folder.path()});
  const Report report = make_report(make_study(std::move(found.runs)), "both", found.probes);
  const std::string page = page_html(report, assets);
  EXPECT_THAT(page, HasSubstr("Which runs learn, and how fast?"));
  EXPECT_EQ(count(page, "<h2>Profiles at initialization</h2>"), 1u);
  EXPECT_LT(page.find("Profiles at initialization"), page.find("What exactly was run?"));
  EXPECT_EQ(count(page_html(testing::made_report(testing::two_placements(1)), assets), "Profiles at init"), 0u);
}

TEST(ProbeSection, DrawsEightKindsAndSaysThatThereAreMore) {
  std::vector<std::string> kinds;
  for (const char* placement : {"pre", "post", "sandwich", "peri", "none"})
    for (const char* norm : {"layernorm", "rmsnorm"})
      kinds.push_back(std::string(placement) + "," + norm + ",add,xavier_normal");
  const Report report = report_of(kinds);
  const Picture picture = probe_pictures(report).at(0);
  EXPECT_THAT(picture.svg, HasSubstr("8 of 10 kinds of stacks, the table has all"));
  EXPECT_EQ(count(picture.svg, "fill-opacity"), 16u);
  EXPECT_THAT(picture.svg, HasSubstr(">pre, rmsnorm</text>"));
  EXPECT_EQ(count(probes_html(report), "<td class=\"n\">4</td>"), 30u) << "two profiles and a number of each";
}

TEST(ProbeSection, DeepStacksKeepThePageSmall) {
  const TemporaryFolder folder;
  make_probe(folder.path(), {pre, post}, 8);  // up to 512 blocks
  const Report report = make_report(Study{}, "p", std::vector<std::string>{folder.path()});
  const Picture picture = probe_pictures(report).at(0);
  EXPECT_LT(picture.svg.size(), 200'000u);
  EXPECT_THAT(picture.svg, HasSubstr("Depth 512"));
  EXPECT_THAT(picture.svg, HasSubstr(">400</text>"));
}

TEST(ProbeSection, DamagedProbesAreLeftOut) {
  const TemporaryFolder folder;
  make_probe(folder / "good", {pre});
  create_folders(folder / "bad");
  write_file_atomically(folder / "bad/probe.csv", "placement\n");
  const Report report = make_report(Study{}, "p", std::vector<std::string>{folder / "bad", folder / "good"});
  ASSERT_EQ(report.left_out.size(), 1u);
  EXPECT_EQ(report.left_out[0].path, folder / "bad");
  EXPECT_THAT(page_html(report, assets), HasSubstr("Folders that were left out"));
  EXPECT_THROW(make_report(Study{}, "p", std::vector<std::string>{folder / "bad"}), Error);
}

}  // namespace
}  // namespace gradflow
