#include "analysis/collect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "analysis/find_runs.h"
#include "core/files.h"
#include "output/csv_table.h"
#include "testing/made_run.h"
#include "testing/temporary_folder.h"

namespace gradflow {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::MadeRun;
using testing::make_run;
using ::testing::StartsWith;
using testing::transformer_config;

class Collecting : public ::testing::Test {
 protected:
  void make(const std::string& name, Placement placement, std::int64_t seed, MadeRun run = {}) {
    run.config = transformer_config(2, placement, seed);
    if (run.steps == MadeRun{}.steps) run.steps = 3;
    make_run(folder_ / name, run);
  }
  void append(const std::string& name, const std::string& text) {
    write_file_atomically(folder_ / name, read_file(folder_ / name) + text);
  }
  CsvTable collected(std::string_view table) {
    const std::string path = folder_.path();
    const Study study = make_study(find_runs(std::span(&path, 1)).runs);
    std::string text;
    pieces_ = 0;
    result_ = collect(study, table, [&](std::string_view piece) {
      EXPECT_TRUE(piece.empty() || piece.ends_with('\n'));
      text += piece;
      ++pieces_;
    });
    return {"collected", text};
  }
  static std::vector<std::string> column(const CsvTable& table, std::string_view name) {
    std::vector<std::string> cells;
    for (std::size_t row = 0; row < table.rows(); ++row) cells.emplace_back(table.text(row, table.column(name)));
    return cells;
  }

  TemporaryFolder folder_;
  Collected result_;
  int pieces_ = 0;
};

TEST_F(Collecting, PrecedesEachRowWithItsRunAndTheKeysThatDiffer) {
  make("a", Placement::post, 1);
  make("b", Placement::pre, 2);
  const CsvTable table = collected("steps");
  EXPECT_THAT(table.columns()[0], "run");
  EXPECT_THAT(table.columns()[1], "seed");
  EXPECT_THAT(table.columns()[2], "model.placement");
  EXPECT_THAT(table.columns()[3], "step");
  EXPECT_EQ(table.columns().size(), 3 + steps_columns().size());
  EXPECT_EQ(result_.runs, 2);
  EXPECT_EQ(result_.rows, 6);
  EXPECT_THAT(column(table, "step"), ElementsAre("1", "2", "3", "1", "2", "3"));
  const std::string a = folder_ / "a", b = folder_ / "b";
  EXPECT_THAT(column(table, "run"), ElementsAre(a, a, a, b, b, b));
  EXPECT_THAT(column(table, "seed"), ElementsAre("1", "1", "1", "2", "2", "2"));
  EXPECT_THAT(column(table, "model.placement"), ElementsAre("post", "post", "post", "pre", "pre", "pre"));
  EXPECT_EQ(table.number(0, table.column("loss")), 1.7);
}

TEST_F(Collecting, EveryTableOfARunFolderCanBeCollected) {
  make("a", Placement::post, 1, {.spikes = {SpikeRow{}}});
  make("b", Placement::pre, 1);
  EXPECT_EQ(collected("layers").rows(), 2u * 2 * 6);
  EXPECT_EQ(collected("timing").rows(), 6u);
  EXPECT_EQ(collected("spikes").rows(), 1u);
  EXPECT_THAT(collectable_tables(),
              ElementsAre("layers", "steps", "spikes", "timing", "tensors", "quantities", "runs"));
  EXPECT_THROW(collected("losses"), std::logic_error);
}

TEST_F(Collecting, RunsWithoutTheTableAreNamed) {
  make("a", Placement::post, 1);
  make("b", Placement::pre, 1);
  write_file_atomically(folder_ / "b/tensors.csv",
                        header_line(tensors_columns()) + "\n1,head.weight,0.1,0.2,0.3,0.4,0.5\n");
  const CsvTable table = collected("tensors");
  EXPECT_EQ(table.rows(), 1u);
  EXPECT_EQ(result_.runs, 1);
  ASSERT_EQ(result_.left_out.size(), 1u);
  EXPECT_EQ(result_.left_out[0].path, folder_ / "a");
  EXPECT_EQ(result_.left_out[0].reason, "it has no tensors.csv");

  const std::string path = folder_.path();
  const Study study = make_study(find_runs(std::span(&path, 1)).runs);
  const Collected none = collect(study, "quantities", [](std::string_view text) { EXPECT_EQ(text, ""); });
  EXPECT_EQ(none.runs, 0);
  EXPECT_EQ(none.left_out.size(), 2u);
}

TEST_F(Collecting, OfADamagedTableNoRowIsWritten) {
  make("a", Placement::post, 1);
  make("b", Placement::pre, 1);
  append("a/steps.csv", "4,64\n");
  const CsvTable table = collected("steps");
  EXPECT_THAT(column(table, "run"), ElementsAre(folder_ / "b", folder_ / "b", folder_ / "b"));
  ASSERT_EQ(result_.left_out.size(), 1u);
  EXPECT_THAT(result_.left_out[0].reason, HasSubstr("steps.csv:5: has 2 cells where the header has 12"));
}

TEST_F(Collecting, HalfALineIsNoRow) {
  make("a", Placement::post, 1, {.status = RunStatus::interrupted});
  append("a/steps.csv", "4,64,0.0");
  EXPECT_EQ(collected("steps").rows(), 3u);
  EXPECT_THAT(result_.left_out, IsEmpty());
}

TEST_F(Collecting, LargeTablesComeInPieces) {
  make("a", Placement::post, 1, {.steps = 20'000});
  const CsvTable table = collected("steps");
  EXPECT_EQ(table.rows(), 20'000u);
  EXPECT_GT(pieces_, 4);
  EXPECT_EQ(table.integer(19'999, table.column("step")), 20'000);
}

TEST_F(Collecting, PathsWithCommasAreQuoted) {
  make("a,b", Placement::post, 1);
  const std::string path = folder_.path();
  const Study study = make_study(find_runs(std::span(&path, 1)).runs);
  std::string text;
  collect(study, "steps", [&](std::string_view piece) { text += piece; });
  EXPECT_THAT(text.substr(text.find('\n') + 1), StartsWith("\"" + (folder_ / "a,b") + "\",1,64"));
}

TEST_F(Collecting, TheTableOfRunsHasARowARun) {
  make("a", Placement::post, 1, {.loss = 3.9});
  make("b", Placement::pre, 2, {.status = RunStatus::failed, .reason = "no memory, \"none\""});
  const std::string path = folder_.path();
  const Study study = make_study(find_runs(std::span(&path, 1)).runs);
  std::string text;
  collect(study, "runs", [&](std::string_view piece) { text += piece; });
  EXPECT_THAT(text,
              StartsWith("run,seed,model.placement,id,status,reason,verdict,steps,tokens,first_loss,final_loss,"));
  EXPECT_THAT(text, HasSubstr(folder_ / "a" + ",1,post," + study.runs[0].id() + ",finished,,stuck,3,,3.9,3.9,"));
  EXPECT_THAT(text, HasSubstr(",failed,\"no memory, \"\"none\"\"\",,"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
}

}  // namespace
}  // namespace gradflow
