#include "output/run_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "core/error.h"
#include "core/files.h"
#include "testing/temporary_folder.h"

namespace gradflow {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;
using testing::HasSubstr;
using testing::StartsWith;

ordered_json config(int depth = 12) {
  return {{"name", "study"},
          {"seed", 1},
          {"model", {{"depth", depth}, {"placement", "pre"}}},
          {"train", {{"betas", {0.9, 0.98}}}},
          {"checkpoint", {{"every", 0}}},
          {"derived", {{"alpha", 2.2}}}};
}

std::string error_of(const RunFolderOptions& options, const ordered_json& configuration = config()) {
  try {
    RunFolder::open(options, configuration);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

void set_status(const RunFolder& folder, RunStatus status) {
  Manifest manifest;
  manifest.status = status;
  write_manifest(folder.file("manifest.json"), manifest);
  if (status != RunStatus::finished && status != RunStatus::diverged) return;
  write_file_atomically(folder.file("summary.json"), "{}\n");
  for (const char* table : {"steps.csv", "layers.csv", "spikes.csv", "timing.csv"})
    write_file_atomically(folder.file(table), "step\n1\n");
}

/// Leaves a run of this status behind.
void make_run(const std::string& path, RunStatus status) {
  const RunFolder folder = RunFolder::open({.path = path}, config());
  set_status(folder, status);
  write_file_atomically(folder.file("steps.csv"), "step\n1\n");
}

TEST(RunFolder, StandsUnderResultsByDefault) {
  EXPECT_EQ(default_run_folder("quickstart", "depth=6-01234567"), "results/quickstart/depth=6-01234567");
}

TEST(RunFolder, IsCreatedWithTheConfiguration) {
  const TemporaryFolder temporary;
  const RunFolder folder = RunFolder::open({.path = temporary / "study/run/"}, config());
  EXPECT_EQ(folder.path(), temporary / "study/run");
  EXPECT_EQ(folder.file("steps.csv"), temporary / "study/run/steps.csv");
  EXPECT_FALSE(folder.finished());
  EXPECT_FALSE(folder.unfinished());
  const std::string text = read_file(folder.file("config.json"));
  EXPECT_EQ(ordered_json::parse(text), config());
  EXPECT_THAT(text, StartsWith("{\n  \"name\": \"study\",\n  \"seed\": 1,\n"));
}

TEST(RunFolder, MayExistAndBeEmpty) {
  const TemporaryFolder temporary;
  EXPECT_EQ(error_of({.path = temporary.path()}), "no error");
}

TEST(RunFolder, RefusesAFolderOfOtherThings) {
  const TemporaryFolder temporary;
  write_file_atomically(temporary / "config.json", "{}");
  for (const bool overwrite : {false, true})
    EXPECT_EQ(error_of({.path = temporary.path(), .overwrite = overwrite}),
              temporary.path() + ": holds other files and no run; choose a new or an empty folder with --out");
  EXPECT_EQ(read_file(temporary / "config.json"), "{}");
  EXPECT_FALSE(fs::exists(temporary / "lock"));
}

TEST(RunFolder, RefusesAFileInItsPlace) {
  const TemporaryFolder temporary;
  write_file_atomically(temporary / "file", "");
  EXPECT_EQ(error_of({.path = temporary / "file"}),
            temporary / "file" + ": is a file, not a folder; choose another folder with --out");
  EXPECT_THAT(error_of({.path = temporary / "file/run"}), StartsWith(temporary / "file/run" + ": cannot be created ("));
}

TEST(RunFolder, RefusesAPlaceThatCannotBeWritten) {
  EXPECT_THAT(error_of({.path = "/proc/gradflow/run"}), StartsWith("/proc/gradflow/run: cannot be created ("));
}

TEST(RunFolder, NamesTheProcessThatHoldsIt) {
  const TemporaryFolder temporary;
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const RunFolder folder = RunFolder::open({.path = temporary / "run"}, config());
    set_status(folder, RunStatus::running);
    (void)!write(ready[1], "x", 1);
    pause();
    _exit(0);
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  for (const bool overwrite : {false, true})
    for (const bool resume : {false, true})
      EXPECT_THAT(error_of({.path = temporary / "run", .overwrite = overwrite, .resume = resume}),
                  StartsWith(temporary / "run/lock: held by process " + std::to_string(child) + " on "));
  EXPECT_EQ(status_in_manifest(temporary / "run/manifest.json"), RunStatus::running);
  EXPECT_EQ(status_of_folder(temporary / "run"), RunStatus::running);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(status_in_manifest(temporary / "run/manifest.json"), RunStatus::running);
  EXPECT_EQ(status_of_folder(temporary / "run"), RunStatus::killed);
  EXPECT_THAT(error_of({.path = temporary / "run"}), HasSubstr("holds an unfinished run (killed)"));
  EXPECT_EQ(error_of({.path = temporary / "run", .overwrite = true}), "no error");
  close(ready[0]);
  close(ready[1]);
}

TEST(RunFolder, SaysThatTheRunIsDone) {
  for (const RunStatus status : {RunStatus::finished, RunStatus::diverged}) {
    const TemporaryFolder temporary;
    make_run(temporary / "run", status);
    fs::remove(temporary / "run/lock");
    for (const bool resume : {false, true}) {
      const RunFolder folder = RunFolder::open({.path = temporary / "run", .resume = resume}, config());
      EXPECT_EQ(folder.finished(), status);
      EXPECT_EQ(read_file(folder.file("steps.csv")), "step\n1\n");
      EXPECT_FALSE(fs::exists(folder.file("lock"))) << "a finished run's folder may be read-only";
    }
  }
}

TEST(RunFolder, OfAFinishedRunIsMadeWholeWhereAResultIsMissingOrDamaged) {
  for (const RunStatus status : {RunStatus::finished, RunStatus::diverged})
    for (const char* name : {"summary.json", "steps.csv", "layers.csv", "spikes.csv", "timing.csv"})
      for (const std::optional<std::string>& damage : {std::optional<std::string>(), {""}, {"[1, 2"}}) {
        const TemporaryFolder temporary;
        make_run(temporary / "run", status);
        EXPECT_EQ(damaged_result(temporary / "run"), "");
        fs::remove(temporary / "run/" + name);
        if (damage) write_file_atomically(temporary / "run/" + name, *damage);
        EXPECT_EQ(damaged_result(temporary / "run"), name);
        EXPECT_EQ(error_of({.path = temporary / "run"}),
                  temporary / "run" + ": holds a finished run whose " + name +
                      " is missing or damaged; make it whole with --resume or start again with --overwrite");
        const RunFolder folder = RunFolder::open({.path = temporary / "run", .resume = true}, config());
        EXPECT_TRUE(folder.unfinished());
        EXPECT_FALSE(folder.finished());
      }
}

TEST(RunFolder, NamesTheWaysOnFromAnUnfinishedRun) {
  for (const auto& [status, word] : {std::pair(RunStatus::running, "killed"),
                                     {RunStatus::interrupted, "interrupted"},
                                     {RunStatus::failed, "failed"}}) {
    const TemporaryFolder temporary;
    make_run(temporary / "run", status);
    EXPECT_EQ(error_of({.path = temporary / "run"}), temporary / "run" + ": holds an unfinished run (" + word +
                                                         "); go on with --resume or start again with --overwrite");
    EXPECT_EQ(read_file(temporary / "run/steps.csv"), "step\n1\n");
  }
}

TEST(RunFolder, WithoutAManifestTheRunHasOnlyBegun) {
  const TemporaryFolder temporary;
  { const RunFolder killed_at_once = RunFolder::open({.path = temporary / "run"}, config()); }
  EXPECT_THAT(error_of({.path = temporary / "run"}), HasSubstr("holds an unfinished run (begun)"));
}

TEST(RunFolder, ALockAloneIsNoRun) {
  const TemporaryFolder temporary;
  write_file_atomically(temporary / "lock", "node1 7\n");
  EXPECT_EQ(error_of({.path = temporary.path()}), "no error");
}

TEST(RunFolder, ResumesAnUnfinishedRunAndStartsWhereThereIsNone) {
  const TemporaryFolder temporary;
  make_run(temporary / "run", RunStatus::interrupted);
  const RunFolder folder = RunFolder::open({.path = temporary / "run", .resume = true}, config());
  EXPECT_TRUE(folder.unfinished());
  EXPECT_EQ(read_file(folder.file("steps.csv")), "step\n1\n");
  EXPECT_FALSE(RunFolder::open({.path = temporary / "new", .resume = true}, config()).unfinished());
}

TEST(RunFolder, RefusesAnotherConfigurationAndNamesTheKeys) {
  for (const RunStatus status : {RunStatus::finished, RunStatus::interrupted}) {
    const TemporaryFolder temporary;
    make_run(temporary / "run", status);
    ordered_json other = config(6);
    other["train"]["betas"] = {0.9, 0.99};
    const std::string what = temporary / "run" +
                             ": holds a run of another configuration: model.depth 12 → 6, train.betas [0.9,0.98] → "
                             "[0.9,0.99]; ";
    const std::string way_out = "choose another folder with --out or replace the run (remove it, or run --overwrite)";
    EXPECT_EQ(error_of({.path = temporary / "run"}, other), what + way_out);
    EXPECT_EQ(error_of({.path = temporary / "run", .resume = true}, other),
              what +
                  "--resume may change only a larger train.steps with constant decay, checkpoint.* and "
                  "compute.threads; " +
                  way_out);
    EXPECT_EQ(ordered_json::parse(read_file(temporary / "run/config.json")), config());
    EXPECT_EQ(error_of({.path = temporary / "run", .overwrite = true}, other), "no error");
    EXPECT_EQ(ordered_json::parse(read_file(temporary / "run/config.json")), other);
  }
}

TEST(RunFolder, NamesEveryKeyThatDiffers) {
  const TemporaryFolder temporary;
  make_run(temporary / "run", RunStatus::finished);
  ordered_json other = config();
  for (int i = 0; i < 8; ++i) other["model"]["new" + std::to_string(i)] = i;
  const std::string message = error_of({.path = temporary / "run"}, other);
  for (int i = 0; i < 8; ++i)
    EXPECT_THAT(message, HasSubstr("model.new" + std::to_string(i) + " absent → " + std::to_string(i)));
}

ordered_json with_steps(int steps, const char* decay = "constant", int threads = 1) {
  ordered_json other = config();
  other["train"]["steps"] = steps;
  other["train"]["decay"] = decay;
  other["compute"]["threads"] = threads;
  return other;
}

TEST(RunFolder, ResumingMayAskForMoreStepsAndOtherThreads) {
  for (const RunStatus status : {RunStatus::finished, RunStatus::interrupted}) {
    const TemporaryFolder temporary;
    const std::string path = temporary / "run";
    set_status(RunFolder::open({.path = path}, with_steps(20)), status);

    EXPECT_THAT(error_of({.path = path}, with_steps(30)),
                HasSubstr("train.steps 20 → 30; go on with --resume; choose another"));
    EXPECT_THAT(error_of({.path = path, .resume = true}, with_steps(19)), HasSubstr("train.steps 20 → 19"));
    EXPECT_THAT(error_of({.path = path, .resume = true}, with_steps(30, "cosine")), HasSubstr("train.steps 20 → 30"));

    const RunFolder longer = RunFolder::open({.path = path, .resume = true}, with_steps(30, "constant", 2));
    EXPECT_TRUE(longer.unfinished());
    EXPECT_FALSE(longer.finished());
    ASSERT_EQ(longer.changes().size(), 2u);
    EXPECT_EQ(longer.changes()[0].key, "compute.threads");
    EXPECT_EQ(longer.changes()[1].key, "train.steps");
    EXPECT_EQ(ordered_json::parse(read_file(longer.file("config.json"))), with_steps(20));
    longer.update_config();
    EXPECT_EQ(ordered_json::parse(read_file(longer.file("config.json"))), with_steps(30, "constant", 2));
  }
}

TEST(RunFolder, AFinishedRunHasNothingToResumeButMoreSteps) {
  const TemporaryFolder temporary;
  const std::string path = temporary / "run";
  set_status(RunFolder::open({.path = path}, with_steps(20)), RunStatus::finished);
  EXPECT_EQ(RunFolder::open({.path = path, .resume = true}, with_steps(20, "constant", 2)).finished(),
            RunStatus::finished);
  set_status(RunFolder::open({.path = path, .overwrite = true}, with_steps(20)), RunStatus::diverged);
  EXPECT_EQ(RunFolder::open({.path = path, .resume = true}, with_steps(30)).finished(), RunStatus::diverged);
}

TEST(RunFolder, RefusesARunWhoseConfigurationIsUnknown) {
  const TemporaryFolder temporary;
  make_run(temporary / "run", RunStatus::finished);
  for (const char* text : {"{ cut", "[]"}) {
    write_file_atomically(temporary / "run/config.json", text);
    EXPECT_THAT(error_of({.path = temporary / "run"}), HasSubstr("its config.json cannot be read; choose another"));
  }
  fs::remove(temporary / "run/config.json");
  EXPECT_THAT(error_of({.path = temporary / "run"}), HasSubstr("its config.json cannot be read; choose another"));
}

TEST(RunFolder, LabelsCheckpointsAndDerivedNumbersMakeNoOtherRun) {
  const TemporaryFolder temporary;
  make_run(temporary / "run", RunStatus::finished);
  ordered_json other = config();
  other["name"] = "label";
  other["checkpoint"]["every"] = 10;
  other.erase("derived");
  other["seed"] = 1.0;  // numbers are compared as numbers
  EXPECT_EQ(RunFolder::open({.path = temporary / "run"}, other).finished(), RunStatus::finished);
}

TEST(RunFolder, OverwriteRemovesTheRunAndNothingElse) {
  const TemporaryFolder temporary;
  make_run(temporary / "run", RunStatus::finished);
  for (const RunFile& file : run_files()) write_file_atomically(temporary / "run/" + std::string(file.name), "old");
  fs::remove(temporary / "run/checkpoint");
  create_folders(temporary / "run/checkpoint");
  for (const char* name : {"step-5.safetensors", "step-9.safetensors.tmp"})
    write_file_atomically(temporary / "run/checkpoint/" + name, "old");
  write_file_atomically(temporary / "run/manifest.json.tmp", "torn");
  write_file_atomically(temporary / "run/notes.txt", "mine");
  create_folders(temporary / "run/plots");
  const RunFolder folder = RunFolder::open({.path = temporary / "run", .overwrite = true}, config());
  std::set<std::string> left;
  for (const auto& entry : fs::directory_iterator(folder.path())) left.insert(entry.path().filename());
  EXPECT_EQ(left, (std::set<std::string>{"config.json", "lock", "notes.txt", "plots"}));
  EXPECT_EQ(read_file(folder.file("notes.txt")), "mine");
  EXPECT_EQ(ordered_json::parse(read_file(folder.file("config.json"))), config());
}

TEST(RunFolder, LeavesNothingBehindWhenItCannotWrite) {
  const TemporaryFolder temporary;
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit limit{100, before.rlim_max};  // enough for the lock, too little for the configuration
  setrlimit(RLIMIT_FSIZE, &limit);
  const std::string message = error_of({.path = temporary / "study/run"});
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_THAT(message, StartsWith(temporary / "study/run/config.json: cannot be written ("));
  EXPECT_FALSE(fs::exists(temporary / "study"));
}

TEST(RunFiles, AreExplained) {
  for (const RunFile& file : run_files()) EXPECT_FALSE(file.content.empty()) << file.name;
}

}  // namespace
}  // namespace gradflow
