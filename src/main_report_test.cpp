// The `report` command on real runs of every kind of stack and outcome. What the page looks like and how it answers is
// tested in a browser: scripts/test-report.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "testing/run_of_program.h"

namespace gradflow::testing {
namespace {

using namespace ::testing;

class ReportCommand : public ProgramTest {
 protected:
  /// A run in the folder's subfolder runs/NAME; code 3 is as good as 0.
  void made(const std::string& name, const Words& overrides) {
    const Outcome outcome = run_gradflow(command(tiny(), overrides, "runs/" + name));
    ASSERT_TRUE(outcome.code == 0 || outcome.code == 3) << outcome.err;
  }

  /// The report of all runs, which must succeed, and whose page must be whole.
  std::string page(const Words& more = {}) {
    const Outcome outcome = run_gradflow(Words{"report", folder_ / "runs"} + more);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    said_ = outcome.err;
    const std::string text = read_file(folder_ / "runs/report.html");
    EXPECT_THAT(text, EndsWith("</html>\n"));
    EXPECT_NO_THROW(data_of(text));
    EXPECT_TRUE(exists("runs/report.md"));
    EXPECT_THAT(text, Not(HasSubstr("nan")));
    return text;
  }

  static nlohmann::json data_of(const std::string& text) {
    const std::string open = R"(id="data">)";
    const std::size_t start = text.find(open) + open.size();
    return nlohmann::json::parse(text.substr(start, text.find("</script>", start) - start));
  }

  std::string said_;
};

TEST_F(ReportCommand, OneRun) {
  made("a", {});
  const std::string text = page();
  EXPECT_THAT(text, HasSubstr("<h1>runs: does pre train?</h1>"));
  EXPECT_EQ(data_of(text)["runs"].size(), 1u);
  EXPECT_TRUE(exists("runs/loss.svg"));
  EXPECT_TRUE(exists("runs/gradient.svg"));
}

TEST_F(ReportCommand, StacksOfOtherKinds) {
  for (const std::string placement : {"pre", "post"}) {
    made("mlp-" + placement, {"stack=mlp", "task=teacher", "placement=" + placement});
    made("resnet-" + placement,
         {"stack=resnet", "task=cifar10", "side=8", "width=4", "depth=3", "placement=" + placement});
    made("regression-" + placement, {"stack=mlp", "task=identity", "placement=" + placement});
  }
  const nlohmann::json data = data_of(page());
  EXPECT_EQ(data["runs"].size(), 6u);
  for (const auto& run : data["runs"]) EXPECT_EQ(run["sublayers"], 1);
}

TEST_F(ReportCommand, RunsThatAllDiverged) {
  for (const std::string seed : {"1", "2"})
    made(seed, {"optimizer=sgd", "learning_rate=1e30", "placement=none", "seed=" + seed});
  const std::string text = page();
  EXPECT_THAT(text, HasSubstr("no norm diverges at depth 2"));
  EXPECT_EQ(data_of(text)["runs"][0]["verdict"], "diverged");
}

TEST_F(ReportCommand, WithoutStreamColumns) {
  made("a", {"record.quantities=none"});
  const std::string text = page();
  EXPECT_THAT(text, Not(HasSubstr("id=\"variance\"")));
  EXPECT_THAT(text, HasSubstr("was not recorded"));
  EXPECT_FALSE(data_of(text)["runs"][0]["layers"].contains("stream_variance"));
}

TEST_F(ReportCommand, UnfinishedRunsAreShownAndWhatIsNoRunIsNamed) {
  made("good", {});
  made("killed", {"seed=2"});
  // As a killed process leaves it: no summary, the status of one that runs.
  std::filesystem::remove(folder_ / "runs/killed/summary.json");
  std::string manifest = read_file(folder_ / "runs/killed/manifest.json");
  manifest.replace(manifest.find("finished"), 8, "running");
  write_file_atomically(folder_ / "runs/killed/manifest.json", manifest);
  std::filesystem::create_directories(folder_ / "runs/broken");
  write_file_atomically(folder_ / "runs/broken/config.json", "{");
  const std::string text = page();
  EXPECT_THAT(text, HasSubstr("1 run not finished"));
  EXPECT_THAT(text, HasSubstr("Folders that were left out"));
  EXPECT_THAT(said_, HasSubstr("runs/broken: left out"));
  EXPECT_EQ(data_of(text)["runs"][1]["verdict"], "unfinished");
}

TEST_F(ReportCommand, NamesOfMarkupAreText) {
  made("a <i>&\"'", {});
  const std::string text = page({"--title", "</script><i>&\"'"});
  EXPECT_THAT(text, HasSubstr("<h1>&lt;/script&gt;&lt;i&gt;&amp;&quot;&#39;: does pre train?</h1>"));
  EXPECT_THAT(text, Not(HasSubstr("<i>")));
}

TEST_F(ReportCommand, GoesWhereItIsTold) {
  made("a", {});
  const Outcome outcome = run_gradflow({"report", folder_ / "runs", "--out", folder_ / "there/deep", "--static"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("there/deep/report.html: 1 run, "));
  EXPECT_THAT(read_file(folder_ / "there/deep/report.html"), HasSubstr("<figure class=\"static\">"));
  EXPECT_FALSE(exists("runs/report.html"));
}

TEST_F(ReportCommand, NothingToReportOnIsAnError) {
  std::filesystem::create_directories(folder_ / "empty");
  const Outcome empty = run_gradflow({"report", folder_ / "empty"});
  EXPECT_EQ(empty.code, 1);
  EXPECT_THAT(empty.err, HasSubstr("empty"));
  EXPECT_EQ(run_gradflow({"report", folder_ / "nowhere"}).code, 1);
  EXPECT_EQ(run_gradflow({"report"}).code, 2);
  EXPECT_FALSE(exists("empty/report.html"));
}

}  // namespace
}  // namespace gradflow::testing
