// Grids of runs with the whole program: the processes of a sweep, killed and interrupted, and the memory that they
// take.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "testing/sweeps.h"

namespace gradflow::testing {
namespace {

using namespace ::testing;
using namespace std::chrono_literals;

/// Whether the process still runs; one that has ended may wait for somebody to notice.
bool is_running(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string line;
  return std::getline(file, line) && line.at(line.rfind(')') + 2) != 'Z';
}

/// Processes whose parent is this one.
std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> children;
  std::ifstream file("/proc/" + std::to_string(parent) + "/task/" + std::to_string(parent) + "/children");
  for (pid_t child; file >> child;) children.push_back(child);
  return children;
}

/// 24 runs, of which the last diverges and number 11 takes a while.
std::string many_runs() {
  std::string entries;
  for (int i = 1; i <= 24; ++i)
    entries += (i == 1 ? "{" : ", {") + std::string("\"seed\": ") + std::to_string(i) +
               ", \"train.steps\": " + (i == 12 ? "400" : "5") +
               ", \"train.learning_rate\": " + (i == 24 ? "1e30" : "1e-3") + "}";
  return "\"together\": [[" + entries + "]]";
}

TEST_F(Sweeps, ARunWhoseWorkerIsKilledIsTriedOnceMore) {
  grid(many_runs());
  ASSERT_EQ(sweep({"--index", "0", "--quiet"}).code, 0);  // now runs.csv tells the folders
  const std::string slow = run_folder(11);
  RunningProgram program(GRADFLOW_PROGRAM, {"sweep", "study.json", "--jobs", "2"}, here());
  pid_t worker = 0;
  ASSERT_TRUE(in_time([&] { return (worker = holder(slow)) > 0; }));
  ASSERT_THAT(children_of(program.pid()), Contains(worker));
  kill(worker, SIGKILL);
  const Outcome outcome = program.wait();
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("its worker ended with signal 9 (Killed); it is tried once more"));
  Words expected(24, "finished");
  expected[23] = "diverged";
  EXPECT_EQ(statuses(), expected);
  const auto files = results();
  EXPECT_EQ(sweep({"--quiet", "--out", "undisturbed"}).code, 0);
  EXPECT_EQ(files, results("undisturbed"));
}

TEST_F(Sweeps, ARunWhoseWorkerIsKilledTwiceHasFailedAndIsTheOnlyOneRunAgain) {
  grid(many_runs());
  ASSERT_EQ(sweep({"--index", "0", "--quiet"}).code, 0);
  const std::string slow = run_folder(11);
  RunningProgram program(GRADFLOW_PROGRAM, {"sweep", "study.json", "--jobs", "2"}, here());
  pid_t first = 0, second = 0;
  const auto trains = [&](pid_t& worker) {
    worker = holder(slow);
    return worker > 0 && worker != first && exists(slow + "/steps.csv");
  };
  ASSERT_TRUE(in_time([&] {
    pid_t worker = 0;
    return trains(worker) && (first = worker) > 0;
  }));
  kill(first, SIGKILL);
  ASSERT_TRUE(in_time([&] { return trains(second); }));
  kill(second, SIGKILL);
  const Outcome outcome = program.wait();
  EXPECT_EQ(outcome.code, 4) << outcome.err;
  Words expected(24, "finished");
  expected[23] = "diverged";
  expected[11] = "failed";
  EXPECT_EQ(statuses(), expected);
  EXPECT_EQ(runs().text(11, runs().column("exit_code")), "137");
  EXPECT_THAT(read_file(folder_ / (slow + "/manifest.json")), HasSubstr("its worker ended with signal 9"));

  const Outcome again = sweep({});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_THAT(again.err, AllOf(HasSubstr("23 of 24 runs had been done before"), HasSubstr("seed=12 train.steps=400")));
  expected[11] = "finished";
  EXPECT_EQ(statuses(), expected);
}

TEST_F(Sweeps, AnInterruptLeavesNoProcessAndNoBrokenFolder) {
  grid(R"("axes": {"train.steps": [100000], "seed": [1, 2, 3, 4]})");
  RunningProgram program(GRADFLOW_PROGRAM, {"sweep", "study.json", "--jobs", "2"}, here());
  ASSERT_TRUE(in_time([&] { return runs_begun() == 2; }));
  const std::vector<pid_t> workers = children_of(program.pid());
  EXPECT_THAT(workers, SizeIs(2));
  program.kill(SIGINT);
  const Outcome outcome = program.wait();
  EXPECT_EQ(outcome.code, 75) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("SIGINT: waiting for the runs at hand to end"));
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("interrupted by SIGINT after step "), Not(HasSubstr("SIGTERM"))));
  for (const pid_t worker : workers) EXPECT_FALSE(is_running(worker));
  EXPECT_THAT(statuses(), ElementsAre("interrupted", "interrupted", "pending", "pending"));
}

TEST_F(Sweeps, CtrlCInATerminalReachesTheWorkersTwiceAndLeavesNoBrokenFolder) {
  grid(R"("axes": {"train.steps": [100000], "seed": [1, 2]})");
  RunningProgram program(GRADFLOW_PROGRAM, {"sweep", "study.json", "--jobs", "2"}, here());
  ASSERT_TRUE(in_time([&] { return runs_begun() == 2; }));
  for (const pid_t worker : children_of(program.pid())) kill(worker, SIGINT);
  program.kill(SIGINT);
  const Outcome outcome = program.wait();
  EXPECT_EQ(outcome.code, 75) << outcome.err;
  EXPECT_THAT(statuses(), Each("interrupted"));
}

TEST_F(Sweeps, ARunWhoseProcessIsGoneIsKilledNotRunning) {
  grid(R"("axes": {"train.steps": [100000], "seed": [1, 2]})");
  RunningProgram program(GRADFLOW_PROGRAM, {"sweep", "study.json", "--index", "0"}, here());
  ASSERT_TRUE(in_time([&] { return runs_begun() == 1; }));
  EXPECT_THAT(sweep({"--list"}).out, HasSubstr(" running"));
  program.kill(SIGKILL);
  EXPECT_EQ(program.wait().code, 128 + SIGKILL);
  EXPECT_THAT(sweep({"--list"}).out, AllOf(HasSubstr(" killed"), Not(HasSubstr(" running"))));
  for (const Words& words : {Words{"compare"}, Words{"collect", "--table", "runs"}}) {
    const Outcome outcome = run_gradflow(words + Words{"results"}, here());
    EXPECT_THAT(outcome.err, HasSubstr(": killed; ")) << words[0];
  }
  EXPECT_THAT(run_gradflow({"collect", "--table", "runs", "results"}, here()).out, HasSubstr(",killed,"));
  ASSERT_EQ(run_gradflow({"report", "--out", "page", "results"}, here()).code, 0);
  EXPECT_THAT(read_file(folder_ / "page/report.html"), AllOf(HasSubstr("(killed, step "), Not(HasSubstr("(running"))));
}

TEST_F(Sweeps, ASecondInterruptEndsEverythingAtOnce) {
  grid(R"("axes": {"train.steps": [100000], "seed": [1, 2]})");
  RunningProgram program(GRADFLOW_PROGRAM, {"sweep", "study.json", "--jobs", "2"}, here());
  ASSERT_TRUE(in_time([&] { return runs_begun() == 2; }));
  const std::vector<pid_t> workers = children_of(program.pid());
  // Stopped, the workers cannot follow the first signal.
  for (const pid_t worker : workers) kill(worker, SIGSTOP);
  program.kill(SIGINT);
  std::this_thread::sleep_for(300ms);
  EXPECT_TRUE(program.runs());
  program.kill(SIGINT);
  EXPECT_EQ(program.wait().code, 128 + SIGINT);
  for (const pid_t worker : workers) EXPECT_TRUE(in_time([&] { return !is_running(worker); }));
}

TEST_F(Sweeps, ARunThatAnotherProcessHasInHandIsLeftToIt) {
  grid(R"("together": [[{"seed": 1, "train.steps": 100000}, {"seed": 2, "train.steps": 5}]])");
  RunningProgram other(GRADFLOW_PROGRAM, {"sweep", "study.json", "--index", "0"}, here());
  ASSERT_TRUE(in_time([&] { return runs_begun() == 1; }));
  other.kill(SIGSTOP);
  const Outcome outcome = sweep({"--fail-fast"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("another process is working in results/study/"));
  EXPECT_THAT(statuses(), ElementsAre("running", "finished"));
  EXPECT_EQ(sweep({"--index", "0"}).code, 1);
  other.kill(SIGKILL);
  EXPECT_NE(other.wait().code, 0);
}

TEST_F(Sweeps, MoreMemoryThanThereIsIsRefusedBeforeAnythingRunsUnlessForced) {
  grid(R"("axes": {"model.width": [8, 16384], "model.depth": [100], "train.steps": [1]})");  // 1.3 TB of weights
  for (const Words& words : {Words{}, Words{"--jobs", "1"}}) {
    const Outcome refused = sweep(words);
    EXPECT_EQ(refused.code, 1);
    EXPECT_THAT(refused.error_lines(),
                ElementsAre(AllOf(StartsWith("gradflow: error: model.width=16384 model.depth=100 train.steps=1: the "
                                             "run needs about "),
                                  HasSubstr("; --force runs it all the same"))));
  }
  EXPECT_THAT(results(), IsEmpty());
  EXPECT_EQ(sweep({"--list"}).code, 0) << "what only looks is not refused";
  EXPECT_EQ(sweep({"--index", "0", "--quiet"}).code, 0);
  EXPECT_THAT(sweep({"--index", "1"}).err, HasSubstr("--force runs it all the same"));

  const Outcome forced = run_gradflow({"sweep", "study.json", "--force", "--jobs", "1", "--quiet"},
                                      {.folder = folder_.path(), .shell = "ulimit -v 30000000"});
  EXPECT_EQ(forced.code, 4);
  EXPECT_THAT(forced.err, HasSubstr("model.width=16384 model.depth=100 train.steps=1: not enough memory"));
  EXPECT_THAT(statuses(), ElementsAre("finished", "failed"));
}

TEST_F(Sweeps, MoreRunsAtATimeThanMemoryHoldsAreRefused) {
  // A batch for which each takes a fifth of what is free.
  const std::string config = write("default.json", "{}");
  const auto described = nlohmann::json::parse(run_gradflow({"describe", config, "--json", "--set", "batch=100"}).out);
  const double a_hundred = described["memory_bytes"]["activations"], free = described["memory_bytes"]["available"];
  const std::string batch = std::to_string(static_cast<std::int64_t>(free / 5 / a_hundred * 100));
  write("study.json",
        R"({"axes": {"train.batch": [)" + batch + R"(], "train.steps": [1], "seed": [1, 2, 3, 4, 5, 6, 7, 8]}})");
  const Outcome refused = sweep({"--jobs", "8"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.error_lines(),
              ElementsAre(AllOf(StartsWith("gradflow: error: --jobs 8: the 8 largest runs need about "),
                                HasSubstr("; write --jobs "), HasSubstr("--force"))));
  EXPECT_FALSE(exists("results/study/runs.csv"));
}

TEST_F(Sweeps, ARunThatWasAcceptedIsNotRefusedForWhatIsFreeWhenItBegins) {
  // The sweep's kernel says what is written here: at first much, and little once the first run has begun, as when a
  // worker keeps what that one took.
  const std::string memory = write("meminfo", "MemAvailable: 900000000000 kB\n");
  grid(R"("together": [[{"seed": 1, "train.steps": 3000}, {"seed": 2, "train.steps": 5}]])");
  RunningProgram program(
      "/usr/bin/env",
      {"unshare", "-rm", "/bin/sh", "-c",
       "mount --bind '" + memory + "' /proc/meminfo || exit 99; exec \"$0\" sweep study.json --jobs 1",
       GRADFLOW_PROGRAM},
      here());
  in_time([&] { return runs_begun() == 1 || !program.runs(); });
  write_file_in_place(memory, "MemAvailable: 1 kB\n");
  const bool was_early = runs_begun() == 1;
  const Outcome outcome = program.wait();
  if (outcome.code == 99 || outcome.err.find("unshare") != std::string::npos)
    GTEST_SKIP() << "no mount of our own here: " << outcome.err;
  EXPECT_TRUE(was_early);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(statuses(), ElementsAre("finished", "finished"));
}

TEST_F(Sweeps, WorkersDoNotGrowFromRunToRun) {
  const auto seeds = [](int count) {
    std::string list = "1";
    for (int i = 2; i <= count; ++i) list += ", " + std::to_string(i);
    return "\"axes\": {\"seed\": [" + list + "]}";
  };
  grid(seeds(10));
  const Outcome few = sweep({"--jobs", "1", "--quiet", "--out", "few"});
  grid(seeds(100));
  const Outcome many = sweep({"--jobs", "1", "--quiet", "--out", "many"});
  EXPECT_EQ(few.code + many.code, 0);
  EXPECT_LT(many.peak_memory - few.peak_memory, std::int64_t{8} << 20);
}

}  // namespace
}  // namespace gradflow::testing
