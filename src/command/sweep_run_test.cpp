#include "command/sweep_run.h"

#include <gtest/gtest.h>

#include "command/worker.h"

namespace gradflow {
namespace {

TEST(DefaultJobs, LeavesEveryThreadACore) {
  EXPECT_EQ(default_jobs(std::vector<GridCell>(10), 4), 4);
  EXPECT_EQ(default_jobs(std::vector<GridCell>(3), 4), 3) << "no worker without work";
  EXPECT_EQ(default_jobs({{.threads = 1}, {.threads = 2}, {.threads = 1}}, 4), 2) << "the widest run counts";
  EXPECT_EQ(default_jobs({{.threads = 8}, {.threads = 8}}, 4), 1);
}

TEST(WorkerReport, ReadsBack) {
  const WorkerReport report{.kind = WorkerReport::Kind::ended,
                            .share = 0.25,
                            .exit = Exit::diverged,
                            .was_finished = true,
                            .lines = {"one", "two"},
                            .said = "a warning with a byte that is no text: \xff"};
  const WorkerReport read = WorkerReport::from(report.text());
  EXPECT_EQ(read.kind, report.kind);
  EXPECT_EQ(read.share, report.share);
  EXPECT_EQ(read.exit, report.exit);
  EXPECT_EQ(read.was_finished, report.was_finished);
  EXPECT_EQ(read.lines, report.lines);
  EXPECT_TRUE(read.said.starts_with("a warning with"));
}

}  // namespace
}  // namespace gradflow
