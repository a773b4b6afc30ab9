#include "output/runs_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "core/files.h"
#include "core/lock.h"
#include "output/csv_table.h"
#include "testing/temporary_folder.h"

namespace gradflow {
namespace {

class Runs : public ::testing::Test {
 protected:
  std::vector<RunRow> rows(int count) {
    std::vector<RunRow> out;
    for (int i = 0; i < count; ++i) {
      const std::string id = "seed=" + std::to_string(i);
      out.push_back({.index = i, .id = id, .status = "pending", .path = folder_ / id});
    }
    return out;
  }

  void finish(const std::string& id, const std::string& status, const std::string& loss) {
    create_folders(folder_ / id);
    write_file_atomically(folder_ / id + "/manifest.json", R"({"status": ")" + status + "\"}");
    write_file_atomically(folder_ / id + "/summary.json", R"({"verdict": "stuck", "final_loss": )" + loss + "}");
    for (const char* table : {"steps.csv", "layers.csv", "spikes.csv", "timing.csv"})
      write_file_atomically(folder_ / id + '/' + table, "step\n");
  }

  std::string text() { return read_file(folder_ / "runs.csv"); }
  std::string line(const std::string& start, int run) {
    return start + folder_ / ("seed=" + std::to_string(run)) + "\n";
  }

  TemporaryFolder folder_;
  const std::string header = "index,id,status,exit_code,verdict,final_loss,path\n";
};

TEST_F(Runs, StandAsTheirFoldersSay) {
  finish("seed=0", "finished", "3.5");
  finish("seed=1", "diverged", "null");
  finish("seed=2", "interrupted", "1");
  RunsTable table(folder_.path(), rows(4));
  table.write();
  EXPECT_EQ(text(), header + line("0,seed=0,finished,0,stuck,3.5,", 0) + line("1,seed=1,diverged,3,stuck,nan,", 1) +
                        line("2,seed=2,interrupted,75,,,", 2) + line("3,seed=3,pending,,,,", 3));
  EXPECT_NO_THROW(read_csv(folder_ / "runs.csv", runs_columns()));
}

TEST_F(Runs, ThatEndedAreDamagedWithoutTheirResults) {
  finish("seed=0", "finished", "half a numb\"");
  finish("seed=1", "diverged", "null");
  remove_file(folder_ / "seed=1/layers.csv");
  RunsTable table(folder_.path(), rows(2));
  table.write();
  EXPECT_EQ(text(), header + line("0,seed=0,damaged,,,,", 0) + line("1,seed=1,damaged,,,,", 1));
  for (const RunRow& row : table.rows()) EXPECT_FALSE(row.done());
}

TEST_F(Runs, AreRunningOnlyWhileSomebodyHoldsTheirLock) {
  finish("seed=0", "running", "1");
  finish("seed=1", "running", "1");
  const FileLock held(folder_ / "seed=1/lock");
  { const FileLock left(folder_ / "seed=0/lock"); }
  RunsTable table(folder_.path(), rows(2));
  table.write();
  EXPECT_EQ(text(), header + line("0,seed=0,killed,,,,", 0) + line("1,seed=1,running,,,,", 1));
}

TEST_F(Runs, OfOtherProcessesAreKept) {
  RunsTable one(folder_.path(), rows(3)), other(folder_.path(), rows(3));
  one.set({.index = 0, .id = "seed=0", .status = "failed", .exit_code = 137, .path = folder_ / "seed=0"});
  one.write();
  other.set({.index = 2,
             .id = "seed=2",
             .status = "finished",
             .exit_code = 0,
             .verdict = "learned",
             .final_loss = 1.25,
             .path = folder_ / "seed=2"});
  other.write();
  const std::string both = header + line("0,seed=0,failed,137,,,", 0) + line("1,seed=1,pending,,,,", 1) +
                           line("2,seed=2,finished,0,learned,1.25,", 2);
  EXPECT_EQ(text(), both);
  one.write();
  EXPECT_EQ(text(), both) << "what one knows does not undo what the other wrote";
}

TEST_F(Runs, OfAnotherGridAreReplaced) {
  RunsTable(folder_.path(), rows(3)).write();
  finish("seed=0", "finished", "2");
  RunsTable(folder_.path(), rows(1)).write();
  EXPECT_EQ(text(), header + line("0,seed=0,finished,0,stuck,2,", 0));
  write_file_atomically(folder_ / "runs.csv", "half a li");
  RunsTable(folder_.path(), rows(1)).write();
  EXPECT_EQ(text(), header + line("0,seed=0,finished,0,stuck,2,", 0));
}

TEST_F(Runs, InAFolderThatACsvFileCannotName) { EXPECT_THROW(RunsTable(folder_ / "a,b", rows(1)), Error); }

}  // namespace
}  // namespace gradflow
