// Grids of runs with the whole program: the scripts that hand a grid to other engines.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "testing/sweeps.h"

namespace gradflow::testing {
namespace {

using namespace ::testing;
namespace fs = std::filesystem;

class Engines : public Sweeps {
 protected:
  void SetUp() override {
    grid(R"("axes": {"seed": [1, 2, 3], "train.learning_rate": [1e-3, 1e30]})");
    ASSERT_EQ(sweep({"--quiet", "--jobs", "1", "--out", "swept"}).code, 0);
    expected_ = results("swept");
    ASSERT_THAT(expected_, SizeIs(6 * 3));
  }

  static std::string path_of(const std::string& script) { return fs::absolute("scripts/" + script).string(); }

  /// Where a script takes this program, unless `environment` ("; export X=Y") says otherwise.
  Surroundings with_program(const std::string& environment = "") {
    Surroundings surroundings = here();
    surroundings.shell = "export GRADFLOW='" GRADFLOW_PROGRAM "'" + environment;
    return surroundings;
  }

  Outcome script(const std::string& name, const Words& words, const std::string& environment = "") {
    return RunningProgram(path_of(name), words, with_program(environment)).wait();
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

  /// Many runs of which the first `jobs` are stopped at the same moment, several times: no other begins.
  void expect_to_stop_at_once(const std::string& name) {
    const std::size_t jobs = 8;
    // As a run that is interrupted ends, and as one does that has not come to heed signals yet.
    for (const std::string ending : {"exit 75", "kill -TERM $$"}) {
      const std::string program =
          write("gradflow of another name", R"(#!/bin/sh
case $1 in
  expand) for index in $(seq 1 40); do echo "'$0' run $index"; done ;;
  run)
    echo "$2" >>begun
    waits=0
    until [ $(wc -l <begun) -ge )" + std::to_string(jobs) +
                                                R"( ] || [ $waits -eq 1000 ]; do sleep 0.01; waits=$((waits + 1)); done
    )" + ending + R"( ;;
esac
)");
      fs::permissions(program, fs::perms::owner_all);
      for (int time = 0; time < 5; ++time) {
        const Outcome outcome =
            script(name, {"study.json", std::to_string(jobs)}, "; export GRADFLOW='" + program + "'");
        EXPECT_EQ(outcome.code, 75) << outcome.err;
        const std::string begun = read_file(folder_ / "begun");
        EXPECT_EQ(static_cast<std::size_t>(std::count(begun.begin(), begun.end(), '\n')), jobs)
            << ending << ": " << begun;
        fs::remove(folder_ / "begun");
      }
    }
  }

  /// Two of five runs, stopped by what `stop` does with the script's process, which leads a group of its own.
  void expect_to_stop(const std::string& name, const std::function<void(pid_t)>& stop) {
    RunningProgram program("/usr/bin/setsid", {path_of(name), "study.json", "2"}, with_program());
    ASSERT_TRUE(in_time([&] { return runs_begun() == 2; }));
    stop(program.pid());
    const Outcome outcome = program.wait();
    EXPECT_EQ(outcome.code, 75) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(name + ": interrupted; the same command goes on where it ended"));
    EXPECT_TRUE(in_time([&] { return statuses_of_folders() == Words{"interrupted", "interrupted"}; }));
    EXPECT_EQ(runs_begun(), 2u);
  }

  /// As a scheduler does: the runs are told, the script is not.
  void expect_to_stop_with_its_runs(const std::string& name) {
    expect_to_stop(name, [&](pid_t) {
      for (const auto& entry : fs::directory_iterator(folder_ / "results/study"))
        kill(holder(fs::relative(entry.path(), folder_.path()).string()), SIGTERM);
    });
  }

  /// Ctrl-C in a terminal.
  void expect_to_stop_with_its_group(const std::string& name) {
    expect_to_stop(name, [](pid_t leader) { kill(-leader, SIGINT); });
  }

  Words statuses_of_folders() {
    Words found;
    for (const auto& entry : fs::directory_iterator(folder_ / "results/study"))
      found.push_back(RunFiles{entry.path().string()}.json("manifest.json")["status"]);
    return found;
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

TEST_F(StoppedEngines, SayThatThereIsNoSuchProgram) {
  for (const std::string name : {"sweep-xargs", "sweep-parallel"}) {
    if (name == "sweep-parallel" && !is_installed("parallel")) continue;
    for (const std::string program : {"./nothing/gradflow", "no-such-gradflow", "study.json", "."}) {
      const Outcome outcome = script(name, {"study.json"}, "; export GRADFLOW=" + program);
      EXPECT_EQ(outcome.code, 1);
      EXPECT_EQ(outcome.err, name + ": error: GRADFLOW: there is no program " + program + "; name the path of one\n");
    }
  }
}

TEST_F(StoppedEngines, AreFoundByTheirName) {
  const std::string scripts = fs::absolute("scripts").string();
  for (const std::string name : {"sweep-xargs", "sweep-parallel", "sweep-slurm"})
    for (const std::string& call : {name, "bash " + name}) {
      const Outcome outcome =
          RunningProgram("/bin/sh", {"-c", "PATH='" + scripts + "':$PATH; " + call + " --help"}, here()).wait();
      EXPECT_EQ(outcome.code, 0) << outcome.err;
      EXPECT_THAT(outcome.out, StartsWith("scripts/" + name + " GRID"));
    }
}

TEST_F(StoppedEngines, XargsBeginsNoOtherRun) { expect_to_stop_with_its_runs("sweep-xargs"); }

TEST_F(StoppedEngines, XargsEndsByCtrlCAsItsRunsDo) { expect_to_stop_with_its_group("sweep-xargs"); }

TEST_F(StoppedEngines, XargsBeginsNoOtherRunWhileSeveralStop) { expect_to_stop_at_once("sweep-xargs"); }

TEST_F(StoppedEngines, GnuParallelBeginsNoOtherRun) {
  if (!is_installed("parallel")) GTEST_SKIP() << "GNU parallel is missing; install it with: apt-get install parallel";
  expect_to_stop_with_its_runs("sweep-parallel");
}

TEST_F(StoppedEngines, GnuParallelEndsByCtrlCAsItsRunsDo) {
  if (!is_installed("parallel")) GTEST_SKIP() << "GNU parallel is missing; install it with: apt-get install parallel";
  expect_to_stop_with_its_group("sweep-parallel");
}

TEST_F(StoppedEngines, GnuParallelBeginsNoOtherRunWhileSeveralStop) {
  if (!is_installed("parallel")) GTEST_SKIP() << "GNU parallel is missing; install it with: apt-get install parallel";
  expect_to_stop_at_once("sweep-parallel");
}

class Slurm : public Engines {
 protected:
  void SetUp() override {
    Engines::SetUp();
    if (HasFatalFailure()) return;
    // Tests run at the same time, each with a Slurm of its own.
    const int port = 10000 + 2 * (getpid() % 5000);
    const Outcome up = RunningProgram(node_, {"up", folder_ / "slurm", std::to_string(port)}).wait();
    if (up.code == 77) GTEST_SKIP() << up.out;
    ASSERT_EQ(up.code, 0) << up.out << up.err;
    environment_ = "; export SLURM_CONF='" + folder_ / "slurm/slurm.conf" + "'";
  }
  void TearDown() override { RunningProgram(node_, {"down", folder_ / "slurm"}).wait(); }

  Outcome slurm(const std::string& command) {
    Surroundings surroundings = here();
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
  grid(R"("axes": {"train.steps": [60000], "record.layers_every": [1000]})");
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
}  // namespace gradflow::testing
