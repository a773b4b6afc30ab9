// Grids of runs with the whole program: sweep and expand.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>
#include <string>

#include "testing/sweeps.h"

namespace gradflow::testing {
namespace {

using namespace ::testing;
namespace fs = std::filesystem;

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
  EXPECT_THAT(column(runs(), "verdict"), ElementsAre("stuck", "learned"));
  EXPECT_THAT(outcome.out, ContainsRegex("\n *0 +1 stuck"));
  EXPECT_THAT(outcome.out, ContainsRegex("\n *100 +1 learned"));
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
  EXPECT_THAT(column(runs(), "exit_code"), ElementsAre("0", "0"));
  EXPECT_THAT(column(runs(), "verdict"), Each(Not(IsEmpty())));
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
  EXPECT_THAT(column(runs(), "verdict"), Each(Not(IsEmpty())));
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
  EXPECT_EQ(column(runs(), "exit_code"), (Words{"0", "3", "0"}));
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
  EXPECT_THAT(column(read_csv(folder_ / "single/runs.csv"), "status"), Each("finished"));

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

}  // namespace
}  // namespace gradflow::testing
