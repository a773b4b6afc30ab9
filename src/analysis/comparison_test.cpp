#include "analysis/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "analysis/comparison_text.h"
#include "analysis/find_runs.h"
#include "core/error.h"
#include "core/files.h"
#include "output/csv_table.h"
#include "output/text_table.h"
#include "testing/made_run.h"
#include "testing/temporary_folder.h"

namespace gradflow {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::MadeRun;
using testing::make_run;
using ::testing::Not;
using ::testing::StartsWith;
using testing::transformer_config;

constexpr double ln10 = 2.302585092994046;

class Comparing : public ::testing::Test {
 protected:
  void make(Placement placement, std::int64_t depth, std::int64_t seed, MadeRun run) {
    run.config = transformer_config(depth, placement, seed);
    make_run(folder_ / ("run" + std::to_string(++runs_)), run);
  }
  Comparison compared() const {
    const std::string path = folder_.path();
    FoundRuns found = find_runs(std::span(&path, 1));
    EXPECT_TRUE(found.left_out.empty());
    return compare(make_study(std::move(found.runs)));
  }
  /// Words of the groups, in order: "12 pre".
  static std::vector<std::string> order(const Comparison& comparison) {
    std::vector<std::string> result;
    for (const StudyGroup& group : comparison.study.groups) {
      std::string line;
      for (const std::string& word : group.words) line += (line.empty() ? "" : " ") + word;
      result.push_back(line);
    }
    return result;
  }
  static std::vector<std::string> sorted(Comparison comparison, const std::string& column) {
    sort_groups(comparison, column);
    return order(comparison);
  }

  /// Three learned at depth 12, at depth 6 one of three diverged.
  void make_two_groups() {
    for (const std::int64_t seed : {1, 2, 3}) {
      const double spread = 0.1 * static_cast<double>(seed - 2);
      make(Placement::pre, 12, seed,
           {.loss = 1.7 + spread, .gradient_rate = 0.01, .variance_rate = 0.2, .seconds_per_step = 0.25});
      make(Placement::pre, 6, seed,
           {.status = seed == 2 ? RunStatus::diverged : RunStatus::finished,
            .loss = seed == 2 ? INFINITY : 3.9,
            .gradient_rate = -ln10});
    }
  }

  TemporaryFolder folder_;
  int runs_ = 0;
};

TEST_F(Comparing, GivesEachGroupItsNumbersOverSeeds) {
  make_two_groups();
  const Comparison comparison = compared();
  ASSERT_THAT(order(comparison), ElementsAre("6", "12"));
  const GroupResult& learned = comparison.results[1];
  EXPECT_EQ(learned.finished(), 3);
  EXPECT_EQ(learned.count(Verdict::learned), 3);
  EXPECT_NEAR(*learned.final_loss.mean, 1.7, 1e-12);
  EXPECT_NEAR(learned.final_loss.interval->high - 1.7, 0.95 * std::sqrt(2 / 0.0975) * 0.1 / std::sqrt(3), 1e-9);
  EXPECT_NEAR(*learned.gradient_rate.mean, 0.01, 1e-12);
  EXPECT_NEAR(*learned.gradient_ratio.mean, std::exp(0.11), 1e-12);
  EXPECT_EQ(learned.gradient_profile, ProfileVerdict::rising);
  EXPECT_NEAR(*learned.variance_rate.mean, 0.2, 1e-12);
  EXPECT_EQ(learned.variance_profile, ProfileVerdict::tenfold_rising) << "0.2·12 is above ln 10";
  EXPECT_NEAR(*learned.steps_per_second.mean, 4, 1e-12);

  const GroupResult& broken = comparison.results[0];
  EXPECT_EQ(broken.count(Verdict::diverged), 1);
  EXPECT_EQ(broken.count(Verdict::stuck), 2);
  EXPECT_EQ(broken.final_loss.seeds, 2) << "a run that diverged has no final loss";
  EXPECT_FALSE(broken.final_loss.interval);
  EXPECT_NEAR(*broken.gradient_ratio_first_step.mean, 1e-5, 1e-15);
  EXPECT_EQ(broken.gradient_profile, ProfileVerdict::tenfold_falling);
}

TEST_F(Comparing, StacksThatOverflowHaveNoRateAndSayWhy) {
  for (const std::int64_t seed : {1, 2, 3}) {
    make(Placement::none, 12, seed, {.loss = 1.7, .gradient_rate = 90, .variance_rate = 90});
    make(Placement::pre, 12, seed, {.loss = 1.7, .gradient_rate = seed == 1 ? 90.0 : 0.01, .variance_rate = 0.01});
  }
  const Comparison comparison = compared();
  ASSERT_THAT(order(comparison), ElementsAre("none", "pre"));
  const GroupResult& overflown = comparison.results[0];
  EXPECT_EQ(overflown.gradient_profile, ProfileVerdict::not_finite);
  EXPECT_EQ(overflown.variance_profile, ProfileVerdict::not_finite);
  EXPECT_FALSE(overflown.gradient_rate.mean);
  const GroupResult& one_seed_did = comparison.results[1];
  EXPECT_EQ(one_seed_did.gradient_profile, ProfileVerdict::undecided);
  EXPECT_EQ(one_seed_did.gradient_rate.seeds, 2);
  EXPECT_THAT(comparison_text(comparison, 200),
              AllOf(::testing::ContainsRegex("not finite +not finite +not finite"), HasSubstr("(2 of 3)")));
  const CsvTable table("csv", comparison_csv(comparison));
  EXPECT_EQ(table.text(0, table.column("gradient_profile")), "not finite");
  EXPECT_EQ(table.text(0, table.column("gradient_rate")), "");
}

TEST_F(Comparing, RunsThatAreNotFinishedEnterNothing) {
  make(Placement::pre, 6, 1, {.loss = 1});
  for (const RunStatus status : {RunStatus::failed, RunStatus::interrupted, RunStatus::running})
    make(Placement::pre, 6, 2 + static_cast<std::int64_t>(status), {.status = status, .loss = 100});
  const Comparison comparison = compared();
  ASSERT_EQ(comparison.results.size(), 1u);
  EXPECT_EQ(comparison.results[0].unfinished, 3);
  EXPECT_EQ(comparison.results[0].finished(), 1);
  EXPECT_EQ(comparison.results[0].final_loss.mean, 1);
  EXPECT_THAT(comparison_text(comparison, 200), HasSubstr("1 learned, 3 unfinished"));
}

TEST_F(Comparing, CountsSpikesOfAllRuns) {
  const SpikeRow loss{.series = SpikeSeries::loss}, norm{.series = SpikeSeries::grad_norm};
  make(Placement::pre, 6, 1, {.spikes = {loss, norm, norm}});
  make(Placement::pre, 6, 2, {.spikes = {loss}});
  const Comparison comparison = compared();
  EXPECT_EQ(comparison.results[0].loss_spikes, 2);
  EXPECT_EQ(comparison.results[0].grad_norm_spikes, 2);
}

TEST_F(Comparing, ATaskWithoutUnigramEntropyHasNoVerdict) {
  make(Placement::pre, 6, 1, {.unigram_entropy = std::nullopt});
  const Comparison comparison = compared();
  EXPECT_EQ(comparison.results[0].without_verdict, 1);
  EXPECT_THAT(comparison_text(comparison, 200), HasSubstr("1 finished"));
}

TEST_F(Comparing, ADamagedTimingTableCostsOnlyTheSpeed) {
  make(Placement::pre, 6, 1, {.loss = 1});
  write_file_atomically(folder_ / "run1/timing.csv", header_line(timing_columns()) + "\nx,y,z,w\n1,2,3,4\n");
  const Comparison comparison = compared();
  ASSERT_EQ(comparison.damaged.size(), 1u);
  EXPECT_THAT(comparison.damaged[0].reason, HasSubstr("timing.csv"));
  EXPECT_FALSE(comparison.results[0].steps_per_second.mean);
  EXPECT_EQ(comparison.results[0].final_loss.mean, 1);
}

TEST_F(Comparing, SortsByKeysAndColumns) {
  make(Placement::pre, 12, 1, {.loss = 2});
  make(Placement::post, 12, 1, {.loss = 3.9});
  make(Placement::pre, 6, 1, {.loss = 1});
  make(Placement::post, 6, 1, {.status = RunStatus::diverged, .loss = NAN});
  const Comparison comparison = compared();
  EXPECT_THAT(order(comparison), ElementsAre("6 pre", "6 post", "12 pre", "12 post"));
  EXPECT_THAT(sorted(comparison, "placement"), ElementsAre("6 pre", "12 pre", "6 post", "12 post"));
  EXPECT_THAT(sorted(comparison, "model.depth:desc"), ElementsAre("12 pre", "12 post", "6 pre", "6 post"));
  EXPECT_THAT(sorted(comparison, "final_loss"), ElementsAre("6 pre", "12 pre", "12 post", "6 post"));
  EXPECT_THAT(sorted(comparison, "final_loss:desc"), ElementsAre("12 post", "12 pre", "6 pre", "6 post"))
      << "what has no number stands last";
  EXPECT_THAT(sorted(comparison, "verdict"), ElementsAre("6 pre", "12 pre", "12 post", "6 post"));
  EXPECT_THAT(sorted(comparison, "verdict:desc"), ElementsAre("6 post", "12 post", "6 pre", "12 pre"));
  EXPECT_THAT(sorted(comparison, "gradient_profile"), ElementsAre("6 pre", "6 post", "12 pre", "12 post"));
}

TEST_F(Comparing, AnUnknownSortColumnNamesTheNearest) {
  make_two_groups();
  Comparison comparison = compared();
  try {
    sort_groups(comparison, "final_los:desc");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit(), Exit::usage);
    EXPECT_THAT(error.what(),
                AllOf(StartsWith("--sort final_los:desc: is no column of this comparison; did you mean final_loss?"),
                      HasSubstr("depth, verdict, runs")));
  }
}

TEST_F(Comparing, AnUnknownOrderNamesTheOneThereIs) {
  make_two_groups();
  Comparison comparison = compared();
  for (const std::string column : {"final_loss", "depth", "verdict"}) try {
      sort_groups(comparison, column + ":dsc");
      FAIL() << column;
    } catch (const Error& error) {
      EXPECT_EQ(error.exit(), Exit::usage);
      EXPECT_EQ(std::string(error.what()),
                "--sort " + column + ":dsc: \"dsc\" is no order; write " + column + " or " + column + ":desc");
    }
}

TEST_F(Comparing, TheTableHasAColumnForWhatDiffers) {
  make_two_groups();
  const std::string text = comparison_text(compared(), 1000);
  EXPECT_THAT(text, StartsWith("depth              verdict    final loss  spikes"));
  EXPECT_THAT(text, HasSubstr("   12            3 learned    1.7 ± 0.25       0"));
  EXPECT_THAT(text, HasSubstr("    6  2 stuck, 1 diverged  3.9 (2 of 3)       0"));
  EXPECT_THAT(text, Not(HasSubstr("placement")));
  EXPECT_THAT(text, HasSubstr("Final loss: mean of the last 20 losses"));
}

TEST_F(Comparing, TheTableFitsNarrowTerminals) {
  make_two_groups();
  const std::string text = comparison_text(compared(), 40);
  std::size_t widest = 0, start = 0, tables = 0;
  for (std::size_t end; (end = text.find('\n', start)) != std::string::npos; start = end + 1) {
    const std::string line = text.substr(start, end - start);
    widest = std::max(widest, display_width(line));
    tables += line.starts_with("depth") ? 1 : 0;
  }
  EXPECT_LE(widest, 40u);
  EXPECT_GT(tables, 1u) << "each part repeats the key";
}

TEST_F(Comparing, WhereTheKeysFillTheTerminalANumberStandsForThem) {
  make_two_groups();
  make(Placement::post, 12, 1, {});
  const std::string text = comparison_text(compared(), 30);
  EXPECT_THAT(text, StartsWith("row  depth  placement\n"
                               "  1      6  pre\n"
                               "  2     12  pre\n"
                               "  3     12  post\n"
                               "\n"
                               "row              verdict\n"
                               "  1  2 stuck, 1 diverged\n"));
}

TEST_F(Comparing, ColumnsWithoutAnyNumberAreLeftOut) {
  make(Placement::pre, 6, 1, {.steps = 1});
  make(Placement::pre, 12, 1, {.steps = 1});
  EXPECT_THAT(comparison_text(compared(), 1000), Not(HasSubstr("steps/s")));
}

TEST_F(Comparing, MarkdownIsATable) {
  make_two_groups();
  const std::string text = comparison_markdown(compared());
  EXPECT_THAT(text, StartsWith("| depth | verdict | final loss |"));
  EXPECT_THAT(text, HasSubstr("|\n| --- | --- | --- |"));
  EXPECT_THAT(text, HasSubstr("\n| 12 | 3 learned | 1.7 ± 0.25 |"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4);
}

TEST_F(Comparing, CsvHasEveryColumnInFullPrecision) {
  make_two_groups();
  write_file_atomically(folder_ / "table.csv", comparison_csv(compared()));
  const CsvTable table = read_csv(folder_ / "table.csv");
  std::vector<std::string> expected{"model.depth"};
  for (const ComparisonColumn& column : comparison_columns()) expected.emplace_back(column.name);
  EXPECT_EQ(table.columns(), expected);
  ASSERT_EQ(table.rows(), 2u);
  EXPECT_EQ(table.integer(1, table.column("model.depth")), 12);
  EXPECT_EQ(table.integer(1, table.column("learned")), 3);
  EXPECT_NEAR(*table.number(1, table.column("final_loss")), 1.7, 1e-12);
  EXPECT_EQ(table.text(0, table.column("final_loss_low")), "");
  EXPECT_EQ(table.integer(0, table.column("final_loss_seeds")), 2);
  EXPECT_EQ(table.text(0, table.column("gradient_profile")), "vanishing");
  EXPECT_EQ(table.text(1, table.column("variance_profile")), "growing");
}

TEST_F(Comparing, ACsvRowOfOneGroupThatDiffersInNothingHasNoKeys) {
  make(Placement::pre, 6, 1, {});
  EXPECT_THAT(comparison_csv(compared()), StartsWith("runs,unfinished,learned"));
}

TEST_F(Comparing, JsonNamesTheRunsOfEachGroup) {
  make_two_groups();
  const LeftOut left_out{"some/folder", "is broken"};
  const Json json = comparison_json(compared(), std::span(&left_out, 1));
  EXPECT_EQ(json.at("keys"), Json({"model.depth"}));
  const Json& group = json.at("groups").at(0);
  EXPECT_EQ(group.at("values").at("model.depth"), 6);
  EXPECT_EQ(group.at("runs").size(), 3u);
  EXPECT_EQ(group.at("runs").at(1).at("seed"), 2);
  EXPECT_EQ(group.at("runs").at(1).at("status"), "diverged");
  EXPECT_TRUE(group.at("runs").at(1).at("final_loss").is_null());
  EXPECT_EQ(group.at("result").at("stuck"), 2);
  EXPECT_TRUE(group.at("result").at("final_loss_low").is_null());
  EXPECT_EQ(json.at("left_out").at(0).at("path"), "some/folder");
}

TEST_F(Comparing, OfFoldersWithoutARunThereIsNoTable) {
  make_two_groups();
  const std::vector<std::string> folders{folder_ / "run1", folder_ / "nowhere", folder_ / "run2"};
  EXPECT_THAT(comparison_of_folders(folders, 1000), StartsWith("depth    verdict"));
  EXPECT_EQ(comparison_of_folders(std::span(folders).subspan(1, 1), 1000), "");
}

TEST(ComparisonColumns, AreNamedOnceEachAndExplained) {
  std::set<std::string_view> names;
  for (const ComparisonColumn& column : comparison_columns()) {
    EXPECT_TRUE(names.insert(column.name).second) << column.name;
    EXPECT_FALSE(column.meaning.empty()) << column.name;
  }
}

}  // namespace
}  // namespace gradflow
