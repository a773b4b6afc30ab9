// The whole program, ended from outside: signals, kill -9, folders that vanish, disks that are full, two at once.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "testing/mutations.h"
#include "testing/run_of_program.h"
#include "testing/torture.h"

namespace gradflow::testing {
namespace {

using namespace ::testing;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

class Interruption : public ProgramTest {
 protected:
  static constexpr const char* tables[] = {"steps.csv", "layers.csv", "spikes.csv"};

  static bool has_rows(const RunFiles& run, std::size_t rows) {
    return run.has("steps.csv") && lines_of(run.file("steps.csv")).size() > rows;
  }

  /// Sends the signal and waits for the end; seconds between them are added to `seconds_`.
  Outcome end(RunningProgram& program, int signal) {
    const auto sent = Clock::now();
    program.kill(signal);
    Outcome outcome = program.wait();
    seconds_.push_back(std::chrono::duration<double>(Clock::now() - sent).count());
    return outcome;
  }

  /// The exit code of a program whose terminal is closed once the condition holds; 128 + signal when one ended it.
  static int code_after_closed_terminal(const Words& arguments, const std::function<bool()>& condition) {
    const Words words = Words{GRADFLOW_PROGRAM} + arguments;
    std::vector<char*> argv;
    for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    int terminal = -1;
    const pid_t pid = forkpty(&terminal, nullptr, nullptr, nullptr);
    if (pid == 0) {
      ::signal(SIGHUP, SIG_DFL);  // the tests may run under nohup
      execv(argv[0], argv.data());
      _exit(127);
    }
    EXPECT_GT(pid, 0);
    EXPECT_TRUE(in_time(condition));
    close(terminal);
    int status = 0;
    EXPECT_TRUE(in_time([&] { return waitpid(pid, &status, WNOHANG) == pid; }));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  void expect_same(const std::string& name, const std::string& whole) {
    const RunFiles a{folder_ / name}, b{folder_ / whole};
    for (const char* table : tables) EXPECT_TRUE(read_file(a.file(table)) == read_file(b.file(table))) << table;
  }

  std::vector<double> seconds_;
};

TEST_F(Interruption, EverySignalEndsItWith75AndItGoesOn) {
  const Words overrides = {"steps=100000000", "record.steps_every=10", "layers_every=1000"};
  for (const auto& [signal, name] :
       {std::pair(SIGINT, "SIGINT"), {SIGTERM, "SIGTERM"}, {SIGUSR1, "SIGUSR1"}, {SIGHUP, "SIGHUP"}}) {
    RunningProgram program(GRADFLOW_PROGRAM, command(tiny(), overrides, name));
    const RunFiles run{folder_ / name};
    ASSERT_TRUE(in_time([&] { return has_rows(run, 2); }));
    const Outcome outcome = end(program, signal);
    EXPECT_EQ(outcome.code, 75) << outcome.err;
    EXPECT_THAT(outcome.error_lines().back(), AllOf(StartsWith("gradflow: warning: interrupted by "), HasSubstr(name)));
    EXPECT_EQ(run.json("manifest.json")["status"], "interrupted");
    EXPECT_THAT(run.json("manifest.json")["reason"].get<std::string>(), StartsWith(name));
  }
}

TEST_F(Interruption, AClosedTerminalLeavesACheckpoint) {
  const Words overrides = {"steps=100000000", "record.steps_every=10"};
  const RunFiles run{folder_ / "run"};
  EXPECT_EQ(code_after_closed_terminal(command(tiny(), overrides), [&] { return has_rows(run, 2); }), 75);
  EXPECT_THAT(run.json("manifest.json")["reason"].get<std::string>(), StartsWith("SIGHUP after step "));
  EXPECT_FALSE(std::filesystem::is_empty(run.file("checkpoint")));
}

TEST_F(Interruption, AClosedTerminalLeavesTheCheckpointsOfASweep) {
  tiny();
  const std::string grid = write("grid.json", R"({"base": "tiny.json", "axes": {"seed": [1, 2, 3]}})");
  const std::string out = folder_ / "runs";
  const auto files = [&](const char* name) {
    Words found;
    std::error_code none;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(out, none))
      if (entry.path().filename().string().starts_with(name)) found.push_back(entry.path().string());
    return found;
  };
  // A run that has done no step has nothing to keep.
  const auto two_have_begun = [&] {
    const Words begun = files("steps.csv");
    return std::count_if(begun.begin(), begun.end(),
                         [](const std::string& table) { return lines_of(table).size() > 2; }) == 2;
  };
  const Words words = Words{"sweep", grid, "--out", out, "--jobs", "2"} + set({"steps=100000000"});
  EXPECT_EQ(code_after_closed_terminal(words, two_have_begun), 75);
  EXPECT_EQ(files("step-").size(), 2u);
  const Words rows = lines_of(out + "/runs.csv");
  EXPECT_EQ(std::count_if(rows.begin(), rows.end(),
                          [](const std::string& row) { return row.find(",interrupted,75,") != std::string::npos; }),
            2);
}

TEST_F(Interruption, UnderNohupAClosedTerminalIsNothing) {
  RunningProgram program(GRADFLOW_PROGRAM, command(tiny(), {"steps=100000000", "record.steps_every=10"}),
                         {.folder = {}, .shell = "trap '' HUP"});
  const RunFiles run{folder_ / "run"};
  ASSERT_TRUE(in_time([&] { return has_rows(run, 2); }));
  program.kill(SIGHUP);
  const std::size_t rows = lines_of(run.file("steps.csv")).size();
  EXPECT_TRUE(in_time([&] { return has_rows(run, rows + 1); }));
  EXPECT_EQ(end(program, SIGTERM).code, 75);
  EXPECT_THAT(run.json("manifest.json")["reason"].get<std::string>(), StartsWith("SIGTERM after step "));
}

TEST_F(Interruption, AnEvaluationIsGivenUpAndMadeAgain) {
  const Words overrides = {"evaluate_every=3", "evaluate_batches=1500"};
  run(tiny(), overrides, "whole");
  RunningProgram program(GRADFLOW_PROGRAM, command(tiny(), overrides));
  const RunFiles run{folder_ / "run"};
  ASSERT_TRUE(in_time([&] { return run.has("steps.csv"); }));  // the first step begins with an evaluation
  EXPECT_EQ(end(program, SIGTERM).code, 75);
  EXPECT_EQ(run_gradflow(command(tiny(), overrides) + Words{"--resume"}).code, 0);
  expect_same("run", "whole");
}

TEST_F(Interruption, AStepOfManyMicroBatchesIsGivenUp) {
  RunningProgram program(GRADFLOW_PROGRAM, command(tiny(), {"accumulation=1000000"}));
  ASSERT_TRUE(in_time([&] { return RunFiles{folder_ / "run"}.has("steps.csv"); }));
  std::this_thread::sleep_for(200ms);
  EXPECT_EQ(end(program, SIGTERM).code, 75);
  EXPECT_EQ((RunFiles{folder_ / "run"}.json("manifest.json")["reason"]), "SIGTERM after step 0");
}

TEST_F(Interruption, DuringTheStartItEndsToo) {
  // 600 blocks take a while to be drawn.
  RunningProgram program(GRADFLOW_PROGRAM, command(tiny(), {"depth=600", "width=64"}));
  ASSERT_TRUE(in_time([&] { return RunFiles{folder_ / "run"}.has("manifest.json"); }));
  EXPECT_EQ(end(program, SIGTERM).code, 75);
  EXPECT_EQ((RunFiles{folder_ / "run"}.json("manifest.json")["status"]), "interrupted");
}

TEST_F(Interruption, ASecondSigintEndsItAtOnceAndHarmsNothing) {
  const Words overrides = {"steps=100000000", "checkpoint.every=1", "record.steps_every=10"};
  RunningProgram program(GRADFLOW_PROGRAM, command(tiny(), overrides));
  const RunFiles run{folder_ / "run"};
  ASSERT_TRUE(in_time([&] { return has_rows(run, 2); }));
  program.kill(SIGINT);
  program.kill(SIGINT);
  EXPECT_THAT(program.wait().code, AnyOf(75, 128 + SIGINT));
  RunningProgram again(GRADFLOW_PROGRAM, command(tiny(), overrides) + Words{"--resume"});
  const std::size_t before = lines_of(run.file("steps.csv")).size();
  EXPECT_TRUE(in_time([&] { return has_rows(run, before + 1); }));
  EXPECT_EQ(end(again, SIGTERM).code, 75);
}

TEST_F(Interruption, TheSecondSigintDoesNotWait) {
  RunningProgram program(GRADFLOW_PROGRAM, command(tiny(), {"accumulation=1000000"}));
  ASSERT_TRUE(in_time([&] { return RunFiles{folder_ / "run"}.has("steps.csv"); }));
  program.kill(SIGINT);
  std::this_thread::sleep_for(50ms);
  EXPECT_EQ(end(program, SIGINT).code, 128 + SIGINT);
}

/// Signals and kill -9 at random moments over many configurations; each is resumed until it is done and compared.
TEST_F(Interruption, KilledAtRandomMomentsItEndsAsIfNothingHadHappened) {
  const std::vector<Words> configurations = {
      {"dropout=0.1", "checkpoint.every=1"},
      {"dropout=0.1", "checkpoint.every=7", "evaluate_every=5", "evaluate_batches=20"},
      {"accumulation=3", "norm=batchnorm", "placement=post", "checkpoint.every=2"},
      {"optimizer=sgd", "momentum=0.9", "checkpoint.every=5", "checkpoint.keep=1"},
      {"optimizer=adam", "learning_rate=0.3", "checkpoint.every=3", "layers_every=1"},
      {"dtype=float64", "record.tensors=true", "checkpoint.every=4"},
      {"stack=mlp", "task=teacher", "norm=batchnorm", "checkpoint.every=1"},
      {"task=text", "data.files=README.md", "data.vocabulary=256", "recompute=true", "checkpoint.every=6"},
      {"placement=resi_dual", "clip_norm=0.3", "decay=cosine", "checkpoint.every=1"},
  };
  Dice dice(torture_seed(), "kills");
  const std::size_t wanted = rounds(9, 200);
  std::size_t kills = 0, signals = 0, runs = 0;
  for (std::size_t i = 0; kills < wanted; ++i) {
    const Words overrides = configurations[i % configurations.size()] + Words{"steps=300"};
    const std::string whole = "whole" + std::to_string(i % configurations.size()), name = "run" + std::to_string(i);
    if (!exists(whole)) run(tiny(), overrides, whole);
    for (int part = 0;; ++part) {
      ASSERT_LT(part, 200) << "it never ends";
      RunningProgram program(GRADFLOW_PROGRAM, command(tiny(), overrides, name) + Words{"--resume", "--quiet"});
      const bool soft = dice.one_in(5);
      if (part < 6) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50 + dice.below(1500)));
        program.kill(soft ? SIGTERM : SIGKILL);
      }
      const Outcome outcome = program.wait();
      if (outcome.code == 128 + SIGKILL) ++kills;
      if (outcome.code == 75) ++signals;
      if (outcome.code == 0) break;
      ASSERT_THAT(outcome.code, AnyOf(75, 128 + SIGKILL, 128 + SIGTERM)) << outcome.err;
      EXPECT_THAT(outcome.err, Not(HasSubstr("damaged"))) << outcome.err;
    }
    expect_same(name, whole);
    const auto summary = [&](const std::string& run) {
      auto json = RunFiles{folder_ / run}.json("summary.json");
      json.erase("recording");
      return json;
    };
    EXPECT_EQ(summary(name), summary(whole));
    std::filesystem::remove_all(folder_ / name);
    ++runs;
  }
  std::cout << "[ torture  ] kills survived: " << kills << " kill -9 and " << signals << " SIGTERM over " << runs
            << " runs of " << configurations.size() << " configurations\n";
}

TEST_F(Interruption, OfManyAtOnceOneTrains) {
  const Words overrides = {"steps=400", "checkpoint.every=10"};
  run(tiny(), overrides, "whole");
  const std::size_t trials = rounds(2, 20);
  for (std::size_t trial = 0; trial < trials; ++trial) {
    const std::string name = "run" + std::to_string(trial);
    std::vector<std::unique_ptr<RunningProgram>> programs;
    for (int i = 0; i < 4; ++i)
      programs.push_back(
          std::make_unique<RunningProgram>(GRADFLOW_PROGRAM, command(tiny(), overrides, name) + Words{"--resume"}));
    int trained = 0;
    for (const auto& program : programs) {
      const Outcome outcome = program->wait();
      const bool found_it_done = outcome.err.find("already finished") != std::string::npos;
      if (outcome.code == 0 && !found_it_done) ++trained;
      if (outcome.code != 0) {
        EXPECT_THAT(outcome.err, HasSubstr("lock: held by process ")) << outcome.code;
      }
    }
    EXPECT_EQ(trained, 1);
    EXPECT_EQ((RunFiles{folder_ / name}.json("manifest.json")["resumed"].size()), 0u);
    expect_same(name, "whole");
  }
}

TEST_F(Interruption, AFolderThatVanishesEndsItWithItsName) {
  const Words overrides = {"steps=100000000", "record.steps_every=10", "checkpoint.every=50"};
  for (const bool moved : {false, true}) {
    RunningProgram program(GRADFLOW_PROGRAM, command(tiny(), overrides));
    const RunFiles run{folder_ / "run"};
    ASSERT_TRUE(in_time([&] { return has_rows(run, 2); }));
    if (moved)
      std::filesystem::rename(run.path, run.path + ".moved");
    else
      // The program may put a new file in just when the folder is to go.
      for (std::error_code again; std::filesystem::exists(run.path);) std::filesystem::remove_all(run.path, again);
    const Outcome outcome = program.wait();
    EXPECT_EQ(outcome.code, 1);
    EXPECT_THAT(outcome.error_lines().back(), AllOf(StartsWith("gradflow: error: " + run.path + "/"), HasSubstr("; ")));
    std::error_code ignored;
    std::filesystem::remove_all(run.path, ignored);
  }
}

/// A file system of its own for a shell, where this machine lets us make one.
class SmallDisk : public Interruption {
 protected:
  /// Runs shell text with $DISK a tmpfs of `size`; skips where that is not allowed.
  Outcome on_disk(const std::string& size, const std::string& text) {
    create_folders(folder_ / "disk");
    const std::string script = "DISK='" + folder_ / "disk" + "'; mount -t tmpfs -o size=" + size +
                               " none \"$DISK\" || exit 99; cd '" + std::filesystem::current_path().string() + "'; " +
                               text;
    return RunningProgram("/usr/bin/env", {"unshare", "-rm", "/bin/sh", "-c", script}).wait();
  }
  std::string quoted(const Words& words) {
    std::string text;
    for (const std::string& word : words) text += " '" + word + "'";
    return text;
  }
};

TEST_F(SmallDisk, FullItEndsWithAMessageAndItsCheckpointIsWhole) {
  const std::string config = tiny(), program = GRADFLOW_PROGRAM;
  const Words overrides = set({"steps=3000", "layers_every=1", "checkpoint.every=20"});
  const Outcome outcome =
      on_disk("400k", "'" + program + "' run '" + config + "' --out \"$DISK/run\" --quiet" + quoted(overrides) +
                          "; echo code $?; cp -r \"$DISK/run\" '" + folder_ / "copy" + "'");
  if (outcome.code == 99 || outcome.code == 1) GTEST_SKIP() << "no mount of our own here: " << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("code 1\n")) << outcome.err;
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("gradflow: error: "), HasSubstr("disk/run/"), HasSubstr("free some space")));
  const RunFiles copy{folder_ / "copy"};
  EXPECT_EQ(copy.json("manifest.json")["status"], "failed");
  // On a larger disk it goes on from its last checkpoint and ends like any other.
  EXPECT_EQ(run_gradflow(Words{"run", config, "--out", copy.path, "--resume", "--quiet"} + overrides).code, 0);
  EXPECT_GT(copy.json("manifest.json")["resumed"][0]["step"], 0);
  run(config, {"steps=3000", "layers_every=1", "checkpoint.every=20"}, "whole");
  expect_same("copy", "whole");
}

TEST_F(SmallDisk, ReadOnlyItIsRefused) {
  const Outcome outcome = on_disk("1m", "mount -o remount,ro \"$DISK\" || exit 99; '" GRADFLOW_PROGRAM "' run '" +
                                            tiny() + "' --out \"$DISK/run\"; echo code $?");
  if (outcome.code == 99 || outcome.code == 1) GTEST_SKIP() << "no mount of our own here: " << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("code 1\n"));
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("disk/run: cannot be created ("), HasSubstr("; ")));
}

TEST_F(Interruption, SecondsFromSigtermToTheEnd) {
  // Not a promise of so many seconds: the figures of the README.
  const std::size_t count = rounds(6, 42);
  Dice dice(torture_seed(), "signals");
  const Words kinds[] = {{"steps=100000000", "record.steps_every=1000", "layers_every=1000"},
                         {"steps=100000000", "evaluate_every=1", "evaluate_batches=1000"},
                         {"accumulation=1000000"},
                         {"steps=100000000", "checkpoint.every=1"},
                         {"steps=1000", "depth=100", "width=64", "batch=16", "context=64"},
                         {"layers_every=1", "record.quantities=[\"hessian\", \"jacobian\"]", "depth=24", "width=64",
                          "batch=8", "context=32"}};
  for (std::size_t i = 0; i < count; ++i) {
    const std::string name = "run" + std::to_string(i);
    RunningProgram program(GRADFLOW_PROGRAM, command(tiny(), kinds[i % std::size(kinds)], name) + Words{"--quiet"});
    ASSERT_TRUE(in_time([&] { return RunFiles{folder_ / name}.has("steps.csv"); }));
    std::this_thread::sleep_for(std::chrono::milliseconds(dice.below(1000)));
    EXPECT_EQ(end(program, SIGTERM).code, 75) << i % std::size(kinds);
  }
  std::sort(seconds_.begin(), seconds_.end());
  EXPECT_LT(seconds_.back(), 20);  // two that it is patient, a checkpoint, and much for a busy machine
  std::printf("[ torture  ] seconds from SIGTERM to the end: median %.2f, worst %.2f of %zu\n",
              seconds_[seconds_.size() / 2], seconds_.back(), seconds_.size());
}

}  // namespace
}  // namespace gradflow::testing
