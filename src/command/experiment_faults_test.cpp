// One run on a disk that fails: every call that changes a file fails once, then the run is taken up again.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <iostream>

#include "testing/experiment.h"
#include "testing/faulty_files.h"
#include "testing/torture.h"

namespace gradflow {
namespace {

namespace fs = std::filesystem;
using testing::ExperimentTest;
using testing::FaultyFiles;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using testing::Words;

class FaultyDisk : public ExperimentTest {
 protected:
  /// A run of which call number `at` fails; what is left is resumed on a good disk and must equal `whole`.
  void run_with_fault(std::uint64_t at, int error_number, FaultyFiles::Mode mode, const Words& overrides) {
    const std::string name = "run";
    fs::remove_all(path(name));
    std::string error;
    {
      const FaultyFiles faults(path(name), at, error_number, mode);
      error = error_of(name, overrides);
      injected_ += FaultyFiles::injected();
    }
    SCOPED_TRACE("call " + std::to_string(at) + ": " + error);
    if (error != "no error") {
      EXPECT_THAT(error, StartsWith(path(name) + "/"));  // it names the file
      EXPECT_THAT(error, HasSubstr("; "));               // and says what to do
      ++refused_;
      // What the folder says of itself: failed, or still running where even that could not be written.
      if (fs::exists(path(name) + "/manifest.json")) {
        const std::string status = json(name, "manifest.json")["status"];
        // Or all was done and only the folder of the manifest, written last, could not be synced.
        const bool only_the_last_word = status == "finished" && error.starts_with(path(name) + "/manifest.json: ");
        EXPECT_TRUE(status == "failed" || status == "running" || only_the_last_word) << status;
        if (status == "failed") ++said_so_;
        // Every checkpoint that is there is whole.
        for (const std::string& file : checkpoints(name)) {
          if (file.ends_with(".safetensors")) {
            EXPECT_NO_THROW(SafetensorsFile(path(name) + "/checkpoint/" + file)) << file;
          }
        }
      }
    }
    run(name, overrides, {.resume = true});
    EXPECT_EQ(said_.find("damaged"), std::string::npos) << said_;
    expect_same(name, "whole", 24);
  }

  /// The calls of a run on a good disk, which ends up in the folder `whole`.
  std::uint64_t calls_of_a_run(const Words& overrides) {
    const FaultyFiles none(path("whole"), 0, 0, FaultyFiles::Mode::once);
    run("whole", overrides);
    const std::uint64_t calls = FaultyFiles::calls();
    EXPECT_GT(calls, 100u) << "the calls are not seen";
    return calls;
  }

  std::uint64_t injected_ = 0;
  std::size_t refused_ = 0, said_so_ = 0;
};

const Words saving_often = {"checkpoint.every=3"};

TEST_F(FaultyDisk, EveryCallFailsOnceAndNothingIsLost) {
  const std::uint64_t calls = calls_of_a_run(saving_often);
  for (const int error_number : {ENOSPC, EIO}) {
    const std::size_t stride = testing::rounds(5, 1);
    for (std::uint64_t at = 1 + (error_number == EIO); at <= calls; at += stride)
      run_with_fault(at, error_number, FaultyFiles::Mode::once, saving_often);
  }
  EXPECT_GT(refused_, injected_ / 2);
  std::cout << "[ torture  ] single faults injected: " << injected_ << ", of " << calls << " calls a run\n";
}

TEST_F(FaultyDisk, ADiskThatFillsUpAndStaysFull) {
  const std::uint64_t calls = calls_of_a_run(saving_often);
  for (std::uint64_t at = 1; at <= calls; at += testing::rounds(7, 1))
    run_with_fault(at, ENOSPC, FaultyFiles::Mode::full, saving_often);
  // The manifest has room for the word `failed` in the blocks that it has.
  EXPECT_GT(said_so_, 0u);
  EXPECT_GE(2 * said_so_, refused_);
  std::cout << "[ torture  ] full disks: " << refused_ << " runs refused, " << said_so_ << " manifests say failed\n";
}

TEST_F(FaultyDisk, ADiskThatGoesReadOnlyOrBreaks) {
  const std::uint64_t calls = calls_of_a_run(saving_often);
  for (const int error_number : {EROFS, EIO}) {
    for (std::uint64_t at = 1; at <= calls; at += testing::rounds(13, 1))
      run_with_fault(at, error_number, FaultyFiles::Mode::onwards, saving_often);
  }
  EXPECT_GT(refused_, 10u);
  std::cout << "[ torture  ] disks gone read-only or broken: " << refused_ << "\n";
}

/// Looks, after each step, at what a crash of the machine would lose.
class CrashWatch final : public Observer {
 public:
  void step_done(const StepResult& result) override {
    if (result.step % 3 != 1 || result.step == 1) return;  // the step before was saved
    ++looks;
    const FaultyFiles::Unsynced lost = FaultyFiles::unsynced();
    EXPECT_THAT(lost.names, ::testing::IsEmpty()) << "after step " << result.step;
    const std::string checkpoint = "checkpoint/step-" + std::to_string(result.step - 1) + ".safetensors";
    const FaultyFiles::Unsynced before = FaultyFiles::unsynced_before(checkpoint);
    EXPECT_THAT(before.names, ::testing::IsSubsetOf({checkpoint + ".tmp"})) << "before the checkpoint stood";
    EXPECT_THAT(before.contents, ::testing::IsSubsetOf({"run.log"})) << "before the checkpoint stood";
  }
  int looks = 0;
};

TEST_F(FaultyDisk, ACrashOfTheMachineTakesNothingThatACheckpointCountsOn) {
  const FaultyFiles counting(path("run"), 0, 0);
  CrashWatch watch;
  run("run", {"checkpoint.every=3", "record.tensors=true", "record.quantities=[\"standard\", \"lesion\"]"},
      {.observer = &watch});
  EXPECT_EQ(watch.looks, 7);
  EXPECT_THAT(FaultyFiles::unsynced().names, ::testing::IsEmpty());
  EXPECT_THAT(FaultyFiles::unsynced().contents, ::testing::IsSubsetOf({"run.log"}));
}

/// What was written until each 400th step was saved, and in how many calls.
class WriteMeter final : public Observer {
 public:
  void step_done(const StepResult& result) override {
    if (result.step % 400 != 1 || result.step == 1) return;
    bytes.push_back(FaultyFiles::written());
    calls.push_back(FaultyFiles::calls());
  }
  std::vector<std::uint64_t> bytes, calls;
};

TEST_F(FaultyDisk, AStepWritesAsMuchAtTheEndOfALongRunAsInItsMiddle) {
  const FaultyFiles counting(path("run"), 0, 0);
  WriteMeter meter;
  run("run", {"steps=2402", "checkpoint.every=400", "depth=1", "batch=1", "dropout=0"}, {.observer = &meter});
  ASSERT_EQ(meter.bytes.size(), 6u);
  const auto between = [](const std::vector<std::uint64_t>& sums, std::size_t from, std::size_t to) {
    return static_cast<double>(sums[to] - sums[from]);
  };
  const double middle = between(meter.bytes, 2, 3), end = between(meter.bytes, 4, 5);  // all steps of four digits
  EXPECT_GT(middle, 0);
  EXPECT_NEAR(end / middle, 1, 0.05) << "files are not only appended to";
  // Once a second or when a mebibyte has come together, not at every step.
  EXPECT_LT(between(meter.calls, 1, 5), 1600);
}

}  // namespace
}  // namespace gradflow
