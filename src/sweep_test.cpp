// Grids of runs with the whole program: sweep, expand, and the scripts that hand a grid to other engines.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "output/runs_table.h"
#include "testing/run_of_program.h"

namespace gradflow {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::lines_of;
using ::testing::Not;
using testing::Outcome;
using testing::run_gradflow;
using testing::RunningProgram;
using ::testing::SizeIs;
using ::testing::StartsWith;
using testing::Words;
using testing::operator+;

bool in_time(const std::function<bool()>& condition) {
  for (int trial = 0; trial < 12000; ++trial) {
    if (condition()) return true;
    std::this_thread::sleep_for(5ms);
  }
  return false;
}

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

class Sweeps : public testing::ProgramTest {
 protected:
  static constexpr const char* base =
      R"("base": {"model": {"depth": 2, "width": 8, "heads": 2}, "data": {"vocabulary": 16, "context": 8},)"
      R"( "train": {"steps": 5, "batch": 4}})";

  std::string grid(const std::string& rest) {
    return write("study.json", std::string("{") + base + (rest.empty() ? "" : ", ") + rest + "}");
  }

  testing::Surroundings here() { return {.folder = folder_.path()}; }
  Outcome sweep(const Words& words) { return run_gradflow(Words{"sweep", "study.json"} + words, here()); }

  CsvTable runs() { return read_csv(folder_ / "results/study/runs.csv", runs_columns()); }
  Words statuses() { return testing::column(runs(), "status"); }
  /// Of the run of that index, relative to the test's folder.
  std::string run_folder(std::size_t index) { return std::string(runs().text(index, runs().column("path"))); }

  /// Path in the folder → content of every CSV file that does not hold times.
  std::map<std::string, std::string> results(const std::string& folder = "results/study") {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(folder_ / folder))
      if (entry.path().extension() == ".csv" && entry.path().filename() != "timing.csv" &&
          entry.path().filename() != "runs.csv")
        files[fs::relative(entry.path(), folder_ / folder).string()] = read_file(entry.path().string());
    return files;
  }

  /// Run folders in which the training has begun.
  std::size_t runs_begun() {
    std::size_t count = 0;
    if (exists("results/study"))
      for (const auto& entry : fs::directory_iterator(folder_ / "results/study"))
        if (fs::exists(entry.path() / "steps.csv")) ++count;
    return count;
  }

  /// The process that the lock of a run folder names.
  pid_t holder(const std::string& folder) {
    std::ifstream file(folder_ / (folder + "/lock"));
    std::string host;
    pid_t pid = 0;
    return file >> host >> pid ? pid : 0;
  }
};

TEST_F(Sweeps, EveryGridOfTheProjectIsValid) {
  for (const auto& entry : fs::directory_iterator("configs/grids")) {
    const Outcome outcome = run_gradflow({"sweep", entry.path().string(), "--count"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.err, IsEmpty()) << entry.path();
    EXPECT_GT(std::stoi(outcome.out), 20) << entry.path();
  }
}

TEST_F(Sweeps, CountAndListRunNothing) {
  grid(R"("axes": {"model.placement": ["pre", "post"], "seed": [1, 2]})");
  EXPECT_EQ(sweep({"--count"}).out, "4\n");
  const Outcome list = sweep({"--list"});
  EXPECT_EQ(list.code, 0) << list.err;
  EXPECT_THAT(list.out,
              AllOf(StartsWith("index  placement  seed  status"), HasSubstr("\n    3  post          2  pending")));
  EXPECT_FALSE(exists("results"));
}

TEST_F(Sweeps, TableAndReportSayThatPostNormNeedsWarmUp) {
  write("study.json",
        R"({"base": {"model": {"depth": 8, "width": 32, "activation": "relu", "placement": "post"},)"
        R"( "data": {"context": 32}, "train": {"steps": 300, "optimizer": "adam", "learning_rate": 3e-3},)"
        R"( "record": {"layers_every": 50}}, "axes": {"train.warmup": [0, 100]}})");
  const Outcome outcome = sweep({});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(testing::column(runs(), "verdict"), ElementsAre("stuck", "learned"));
  EXPECT_THAT(outcome.out, ::testing::ContainsRegex("\n *0 +1 stuck"));
  EXPECT_THAT(outcome.out, ::testing::ContainsRegex("\n *100 +1 learned"));
  ASSERT_EQ(run_gradflow({"report", "results/study"}, here()).code, 0);
  const std::string page = read_file(folder_ / "results/study/report.md");
  EXPECT_THAT(page, AllOf(HasSubstr("stuck at the unigram entropy"), HasSubstr("learned")));
}

TEST_F(Sweeps, RunEveryCellAndSkipWhatIsFinished) {
  grid(R"("axes": {"model.placement": ["pre", "post"], "train.learning_rate": [1e-3, 0.001]})");
  const Outcome first = sweep({});
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_THAT(first.err, HasSubstr("2 cells have the configuration of another and are left out: model.placement=pre "
                                   "train.learning_rate=0.001 equals model.placement=pre"));
  EXPECT_THAT(statuses(), ElementsAre("finished", "finished"));
  EXPECT_THAT(testing::column(runs(), "exit_code"), ElementsAre("0", "0"));
  EXPECT_THAT(testing::column(runs(), "verdict"), Each(Not(IsEmpty())));
  EXPECT_TRUE(exists(run_folder(0) + "/summary.json"));
  EXPECT_THAT(first.out, AllOf(HasSubstr("placement"), HasSubstr("runs in results/study, a row each in")));

  const auto written = fs::last_write_time(folder_ / (run_folder(0) + "/summary.json"));
  const Outcome second = sweep({});
  EXPECT_EQ(second.code, 0);
  EXPECT_THAT(second.err, HasSubstr("2 of 2 runs had been done before"));
  EXPECT_EQ(fs::last_write_time(folder_ / (run_folder(0) + "/summary.json")), written);
}

TEST_F(Sweeps, MakeFinishedRunsWholeWhoseResultsAreDamaged) {
  grid(R"("axes": {"seed": [1, 2, 3]})");
  ASSERT_EQ(sweep({}).code, 0);
  const std::string summary = run_folder(0) + "/summary.json", table = run_folder(1) + "/layers.csv";
  const std::string rows = read_file(folder_ / table);
  write_file_atomically(folder_ / summary, read_file(folder_ / summary).substr(0, 40));
  remove_file(folder_ / table);
  const Outcome compared = run_gradflow({"compare", "results"}, here());
  EXPECT_THAT(compared.error_lines(), ElementsAre(HasSubstr("its sweep, or run --resume, makes it whole"),
                                                  HasSubstr("its sweep, or run --resume, makes it whole")));
  EXPECT_THAT(sweep({"--list"}).out,
              AllOf(HasSubstr("0     1  damaged"), HasSubstr("1     2  damaged"), HasSubstr("2     3  finished")));
  const Outcome again = sweep({});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_THAT(again.err, AllOf(HasSubstr(summary + ": missing or damaged; the finished run is made whole"),
                               HasSubstr(table + ": missing or damaged; the finished run is made whole"),
                               HasSubstr("1 of 3 runs had been done before")));
  EXPECT_THAT(statuses(), Each("finished"));
  EXPECT_THAT(testing::column(runs(), "verdict"), Each(Not(IsEmpty())));
  EXPECT_EQ(read_file(folder_ / table), rows);
  EXPECT_THAT(run_gradflow({"compare", "results"}, here()).err, IsEmpty());
}

TEST_F(Sweeps, OutNamesTheFolder) {
  grid(R"("axes": {"seed": [1, 2]})");
  EXPECT_EQ(sweep({"--out", "mine", "--quiet"}).code, 0);
  EXPECT_FALSE(exists("results"));
  EXPECT_THAT(results("mine"), SizeIs(2 * 3));  // steps, layers, spikes
  EXPECT_EQ(lines_of(folder_ / "mine/runs.csv").size(), 3u);
}

TEST_F(Sweeps, ADivergedRunIsAResultUnlessStrict) {
  grid(R"("axes": {"train.learning_rate": [1e-3, 1e30, 1e-4]})");
  EXPECT_EQ(sweep({"--quiet"}).code, 0);
  EXPECT_THAT(statuses(), ElementsAre("finished", "diverged", "finished"));
  EXPECT_EQ(testing::column(runs(), "exit_code"), (Words{"0", "3", "0"}));
  EXPECT_EQ(sweep({"--quiet", "--strict"}).code, 4);
  EXPECT_EQ(sweep({"--quiet", "--index", "1"}).code, 0);
  EXPECT_EQ(sweep({"--quiet", "--index", "1", "--strict"}).code, 4);
}

TEST_F(Sweeps, AFailingRunTakesNoOtherWithIt) {
  grid(R"("axes": {"seed": [1, 2, 3]})");
  ASSERT_EQ(sweep({"--index", "1", "--quiet"}).code, 0);
  EXPECT_THAT(statuses(), ElementsAre("pending", "finished", "pending"));
  fs::create_directories(folder_ / run_folder(0));
  write(run_folder(0) + "/notes.txt", "not a run");
  const Outcome fast = sweep({"--jobs", "1", "--fail-fast"});
  EXPECT_EQ(fast.code, 4);
  EXPECT_THAT(fast.err, AllOf(HasSubstr("gradflow: error: seed=1: "), HasSubstr("holds other files and no run")));
  EXPECT_THAT(statuses(), ElementsAre("failed", "finished", "pending"));
  const Outcome all = sweep({"--jobs", "1"});
  EXPECT_EQ(all.code, 4);
  EXPECT_THAT(statuses(), ElementsAre("failed", "finished", "finished"));
  const Outcome one = sweep({"--index", "0"});
  EXPECT_EQ(one.code, 4);
  EXPECT_THAT(one.error_lines(), ElementsAre(HasSubstr("holds other files and no run")));
}

TEST_F(Sweeps, AnIndexOutOfRangeIsSaid) {
  grid(R"("axes": {"seed": [1, 2, 3]})");
  for (const std::string index : {"3", "-1"}) {
    const Outcome outcome = sweep({"--index=" + index});
    EXPECT_EQ(outcome.code, 2);
    EXPECT_THAT(outcome.error_lines(),
                ElementsAre("gradflow: error: --index " + index + ": study.json has 3 runs; write 0 to 2"));
  }
  EXPECT_EQ(sweep({"--index", "x"}).code, 2);
  EXPECT_EQ(sweep({"--jobs", "0"}).code, 2);
  EXPECT_EQ(sweep({"--list", "--count"}).code, 2);
}

TEST_F(Sweeps, AnInvalidCellRefusesTheGridBeforeAnythingRuns) {
  grid("\"axes\": {\"seed\": [1, 2],\n\"model.heads\": [2, 3]}");
  const Outcome refused = sweep({});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(
      refused.error_lines(),
      ElementsAre(AllOf(StartsWith("gradflow: error: study.json:2: model.heads: 3 does not divide model.width 8"),
                        EndsWith(" (cell seed=1 model.heads=3 and 1 more)"))));
  EXPECT_FALSE(exists("results"));
  const Outcome skipped = sweep({"--skip-invalid"});
  EXPECT_EQ(skipped.code, 0);
  EXPECT_THAT(skipped.err, HasSubstr("gradflow: warning: left out: study.json:2: model.heads: 3 does not divide"));
  EXPECT_THAT(statuses(), ElementsAre("finished", "finished"));
  EXPECT_EQ(sweep({"--count", "--skip-invalid"}).out, "2\n");
}

TEST_F(Sweeps, FaultsOfTheGridFileEndWithOne) {
  write("study.json", "{\"axes\": {\n\"model.dept\": [1]}}");
  for (const char* command : {"sweep", "expand"}) {
    const Outcome outcome = run_gradflow({command, "study.json"}, here());
    EXPECT_EQ(outcome.code, 1);
    EXPECT_THAT(outcome.error_lines(), ElementsAre(AllOf(StartsWith("gradflow: error: study.json:2: model.dept: "),
                                                         HasSubstr("did you mean model.depth?"))));
  }
}

TEST_F(Sweeps, ResultsDoNotDependOnJobsOrderOrWay) {
  grid(R"("axes": {"seed": [1, 2], "model.placement": ["pre", "deepnorm"], "train.steps": [5, 7]})");
  ASSERT_EQ(sweep({"--jobs", "1", "--quiet"}).code, 0);
  const auto expected = results();
  EXPECT_THAT(expected, SizeIs(8 * 3));

  EXPECT_EQ(sweep({"--jobs", "3", "--quiet", "--out", "three"}).code, 0);
  EXPECT_EQ(results("three"), expected);

  for (const int index : {5, 2, 7, 0, 1, 6, 4, 3})
    EXPECT_EQ(sweep({"--index", std::to_string(index), "--quiet", "--out", "single"}).code, 0);
  EXPECT_EQ(results("single"), expected);
  EXPECT_THAT(testing::column(read_csv(folder_ / "single/runs.csv"), "status"), Each("finished"));

  fs::rename(folder_ / "results", folder_ / "swept");
  const Outcome commands = run_gradflow({"expand", "study.json"}, here());
  std::istringstream lines(commands.out);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_THAT(line, StartsWith(GRADFLOW_PROGRAM " run "));
    EXPECT_EQ(RunningProgram("/bin/sh", {"-c", line + " --quiet"}, here()).wait().code, 0) << line;
  }
  EXPECT_EQ(results(), expected);
  // The configurations are the same, down to the name.
  for (const auto& entry : fs::directory_iterator(folder_ / "results/study"))
    EXPECT_EQ(read_file(entry.path().string() + "/config.json"),
              read_file(folder_ / "swept/study" + ("/" + entry.path().filename().string()) + "/config.json"));
}

TEST_F(Sweeps, ExpandQuotesForTheShell) {
  fs::create_directories(folder_ / "it's here");
  write("it's here/my text.txt", std::string(300, 'a') + std::string(300, 'b'));
  write("it's here/base.json", R"({"data": {"task": "text", "files": ["my text.txt"], "context": 8},
                                   "model": {"depth": 1, "width": 8, "heads": 2}, "train": {"steps": 2}})");
  write("study.json", R"({"base": "it's here/base.json", "axes": {"train.betas": [[0.9, 0.99], [0.8, 0.9]]}})");
  const Outcome commands = run_gradflow({"expand", "study.json"}, here());
  EXPECT_EQ(commands.code, 0) << commands.err;
  EXPECT_THAT(commands.out, HasSubstr("gradflow run 'it'\\''s here/base.json' --set 'train.betas=[0.9, 0.99]'"));
  const std::string script = write("all.sh", commands.out);
  EXPECT_EQ(RunningProgram("/bin/sh", {"-ec", ". ./all.sh"}, here()).wait().code, 0);
  const auto expected = results();
  EXPECT_EQ(sweep({"--quiet", "--out", "swept"}).code, 0);
  EXPECT_EQ(results("swept"), expected);
}

TEST_F(Sweeps, ExpandCallsTheProgramAsItWasCalled) {
  grid(R"("axes": {"seed": [1]})");
  const fs::path program = GRADFLOW_PROGRAM;
  fs::create_directories(folder_ / "my programs");
  fs::create_symlink(program, folder_ / "my programs/gradflow");
  const auto first_words = [&](const std::string& call, const std::string& path) {
    const Outcome outcome = RunningProgram("/bin/sh", {"-ec", path + call + " expand study.json"}, here()).wait();
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(RunningProgram("/bin/sh", {"-ec", path + outcome.out}, here()).wait().code, 0) << outcome.out;
    return outcome.out.substr(0, outcome.out.find(" run "));
  };
  EXPECT_EQ(first_words("'my programs/gradflow'", ""), "'my programs/gradflow'");
  EXPECT_EQ(first_words("gradflow", "PATH=" + program.parent_path().string() + ":$PATH; "), "gradflow");
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

// ---- other engines

class Engines : public Sweeps {
 protected:
  void SetUp() override {
    grid(R"("axes": {"seed": [1, 2, 3], "train.learning_rate": [1e-3, 1e30]})");
    ASSERT_EQ(sweep({"--quiet", "--jobs", "1", "--out", "swept"}).code, 0);
    expected_ = results("swept");
    ASSERT_THAT(expected_, SizeIs(6 * 3));
  }

  Outcome script(const std::string& name, const Words& words, const std::string& environment = "") {
    testing::Surroundings surroundings = here();
    surroundings.shell = "export GRADFLOW='" GRADFLOW_PROGRAM "'" + environment;
    return RunningProgram(fs::absolute("scripts/" + name).string(), words, surroundings).wait();
  }

  static bool is_installed(const std::string& program) {
    return RunningProgram("/bin/sh", {"-c", "command -v " + program}).wait().code == 0;
  }

  std::map<std::string, std::string> expected_;
};

TEST_F(Engines, XargsGivesTheSameBytes) {
  const Outcome outcome = script("sweep-xargs", {"study.json", "2"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("6 of 6 runs had been done before"));
  EXPECT_EQ(results(), expected_);
  EXPECT_THAT(statuses(), ElementsAre("finished", "diverged", "finished", "diverged", "finished", "diverged"));
}

TEST_F(Engines, GnuParallelGivesTheSameBytes) {
  if (!is_installed("parallel")) GTEST_SKIP() << "GNU parallel is missing; install it with: apt-get install parallel";
  const Outcome outcome = script("sweep-parallel", {"study.json", "2"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("6 of 6 runs had been done before"));
  EXPECT_EQ(results(), expected_);
  EXPECT_THAT(lines_of(folder_ / "study.joblog"), SizeIs(7));
}

/// Runs of which the first is stopped by a signal: those behind it must not begin.
class StoppedEngines : public Engines {
 protected:
  void SetUp() override { grid(R"("axes": {"train.steps": [100000], "seed": [1, 2, 3, 4, 5]})"); }

  void expect_to_stop(const std::string& name) {
    testing::Surroundings surroundings = here();
    surroundings.shell = "export GRADFLOW='" GRADFLOW_PROGRAM "'";
    RunningProgram program(fs::absolute("scripts/" + name).string(), {"study.json", "2"}, surroundings);
    ASSERT_TRUE(in_time([&] { return runs_begun() == 2; }));
    std::vector<pid_t> runs;
    for (const auto& entry : fs::directory_iterator(folder_ / "results/study"))
      runs.push_back(holder(fs::relative(entry.path(), folder_.path()).string()));
    // The scheduler's way: the runs are told, the script is not.
    for (const pid_t run : runs) kill(run, SIGTERM);
    const Outcome outcome = program.wait();
    EXPECT_EQ(outcome.code, 75) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(name + ": interrupted; the same command goes on where it ended"));
    EXPECT_EQ(runs_begun(), 2u);
  }
};

TEST_F(StoppedEngines, TellTheirUsageAndRunNothing) {
  for (const std::string name : {"sweep-xargs", "sweep-parallel", "sweep-slurm"}) {
    const Outcome help = script(name, {"--help"}), nothing = script(name, {}), option = script(name, {"--jobs"});
    EXPECT_EQ(help.code, 0);
    EXPECT_THAT(help.out, HasSubstr("scripts/" + name + " GRID"));
    EXPECT_EQ(help.err, "");
    for (const Outcome& wrong : {nothing, option}) {
      EXPECT_EQ(wrong.code, 2);
      EXPECT_EQ(wrong.err, help.out);
    }
  }
}

TEST_F(StoppedEngines, XargsBeginsNoOtherRun) { expect_to_stop("sweep-xargs"); }

TEST_F(StoppedEngines, GnuParallelBeginsNoOtherRun) {
  if (!is_installed("parallel")) GTEST_SKIP() << "GNU parallel is missing; install it with: apt-get install parallel";
  expect_to_stop("sweep-parallel");
}

class Slurm : public Engines {
 protected:
  void SetUp() override {
    Engines::SetUp();
    if (HasFatalFailure()) return;
    const Outcome up = RunningProgram(node_, {"up", folder_ / "slurm"}).wait();
    if (up.code == 77) GTEST_SKIP() << up.out;
    ASSERT_EQ(up.code, 0) << up.out << up.err;
    environment_ = "; export SLURM_CONF='" + folder_ / "slurm/slurm.conf" + "'";
  }
  void TearDown() override { RunningProgram(node_, {"down", folder_ / "slurm"}).wait(); }

  Outcome slurm(const std::string& command) {
    testing::Surroundings surroundings = here();
    surroundings.shell = "true" + environment_;
    return RunningProgram("/bin/sh", {"-c", command}, surroundings).wait();
  }

  const std::string node_ = fs::absolute("src/testing/one-node-slurm").string();
  std::string environment_;
};

TEST_F(Slurm, AJobArrayGivesTheSameBytes) {
  const Outcome submitted = script("sweep-slurm", {"study.json", "--wait"}, environment_);
  EXPECT_EQ(submitted.code, 0) << submitted.err;
  EXPECT_EQ(results(), expected_);
  EXPECT_THAT(statuses(), ElementsAre("finished", "diverged", "finished", "diverged", "finished", "diverged"));
}

TEST_F(Slurm, ASignalledTaskGoesBackIntoTheQueueAndOn) {
  grid(R"("axes": {"train.steps": [20000], "record.layers_every": [1000]})");
  ASSERT_EQ(sweep({"--quiet", "--out", "undisturbed"}).code, 0);
  const Outcome submitted = script("sweep-slurm", {"study.json", "--parsable"}, environment_);
  ASSERT_EQ(submitted.code, 0) << submitted.err;
  const std::string job = submitted.out.substr(0, submitted.out.find_first_of("; \n"));
  const auto row_count = [&] {
    std::size_t rows = 0;
    for (const auto& [path, text] : exists("results/study") ? results() : std::map<std::string, std::string>())
      if (path.ends_with("/steps.csv")) rows = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
    return rows;
  };
  ASSERT_TRUE(in_time([&] { return row_count() > 10; }));
  EXPECT_EQ(slurm("scancel --signal=USR1 --batch " + job + "_0").code, 0);
  EXPECT_TRUE(in_time([&] { return slurm("scontrol show job " + job + " | grep -o 'Restarts=1'").code == 0; }));
  EXPECT_TRUE(in_time([&] { return slurm("squeue --noheader --job " + job).out.empty(); }));
  EXPECT_THAT(statuses(), ElementsAre("finished"));
  EXPECT_EQ(results(), results("undisturbed"));
}

}  // namespace
}  // namespace gradflow
