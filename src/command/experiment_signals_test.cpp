// One run, in this process, ended by a signal: what it keeps, gives up and makes up for.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <utility>

#include "command/experiment.h"
#include "testing/experiment.h"

namespace gradflow::testing {
namespace {

using namespace ::testing;
namespace fs = std::filesystem;

TEST_F(ExperimentTest, ASignalEndsItWithACheckpointAndItsNameInTheManifest) {
  for (const auto& [signal, name] :
       {std::pair(SIGINT, "SIGINT"), {SIGTERM, "SIGTERM"}, {SIGUSR1, "SIGUSR1"}, {SIGHUP, "SIGHUP"}}) {
    const ExperimentResult result = run_until(9, name, {}, false, signal);
    EXPECT_EQ(result.exit, Exit::interrupted);
    EXPECT_THAT(said_,
                AllOf(HasSubstr(std::string("interrupted by ") + name + " after step 9"), HasSubstr("--resume")));
    EXPECT_EQ(json(name, "manifest.json")["status"], "interrupted");
    EXPECT_EQ(json(name, "manifest.json")["reason"], std::string(name) + " after step 9");
    EXPECT_THAT(checkpoints(name), ElementsAre("step-9.safetensors"));
    EXPECT_FALSE(fs::exists(path(name) + "/summary.json"));
  }
}

/// Sends a signal in the middle of a step and makes the step last until nobody waits for it any longer.
class SlowStep final : public Observer, private Watcher {
 public:
  explicit SlowStep(std::int64_t step) : step_(step) {}
  Watcher* watcher_for(std::int64_t step) override { return step == step_ ? this : nullptr; }
  void step_done(const StepResult&) override {}

 private:
  void forward_done(std::size_t, const Stream&, const Stream&, const Inside&, const Batch&) override {
    if (++passed_ != 7) return;  // in the second micro-batch: the first has changed the running statistics
    ::raise(SIGTERM);
    ::sleep(4);
  }
  void gradient_arrived(std::size_t, const Stream&) override {}

  std::int64_t step_;
  int passed_ = 0;
};

TEST_F(ExperimentTest, AStepThatTakesTooLongIsGivenUpAndMadeAgain) {
  const Words overrides = {"norm=batchnorm", "placement=post", "accumulation=2"};
  run("whole", overrides);
  SlowStep slow(10);
  EXPECT_EQ(run("parts", overrides, {.observer = &slow}).exit, Exit::interrupted);
  EXPECT_THAT(said_, HasSubstr("SIGTERM after step 9"));
  EXPECT_THAT(checkpoints("parts"), ElementsAre("step-9.safetensors"));
  run("parts", overrides, {.resume = true});
  expect_same("parts", "whole", 24);
}

const Words on_demand = {R"(record.quantities=["standard", "lesion", "hessian"])"};

TEST_F(ExperimentTest, AMeasurementThatKeepsASignalWaitingIsGivenUpAndMadeWhenTheRunGoesOn) {
  run("whole", on_demand);
  for (const std::int64_t step : {10, 24}) {
    const std::string name = "cut" + std::to_string(step);
    SlowEnd slow(step);
    EXPECT_EQ(run(name, on_demand, {.observer = &slow}).exit, Exit::interrupted);
    EXPECT_THAT(said_, HasSubstr("SIGTERM after step " + std::to_string(step)));
    EXPECT_THAT(checkpoints(name), ElementsAre("step-" + std::to_string(step) + ".safetensors"));
    for (const char* table : {"/quantities.csv", "/tensors.csv"})  // spectral norms are such measurements too
      EXPECT_THAT(read_file(path(name) + table), Not(HasSubstr("\n" + std::to_string(step) + ","))) << table;
    EXPECT_FALSE(fs::exists(path(name) + "/summary.json"));
    // Interrupted again before it could make up for it, it still owes.
    class AtRestoring final : public Observer {
     public:
      void restore(const SavedState&) override {
        ::raise(SIGTERM);
        ::sleep(4);
      }
      void step_done(const StepResult&) override {}
    } again;
    EXPECT_EQ(run(name, on_demand, {.resume = true, .observer = &again}).exit, Exit::interrupted);
    EXPECT_EQ(run(name, on_demand, {.resume = true}).exit, Exit::done);
    expect_same(name, "whole", 24);
  }
}

TEST_F(ExperimentTest, AMeasurementOwedOfALastStepIsNotMadeWhereThatIsNoLongerTheLast) {
  const Words longer = {on_demand[0], "train.steps=40"};
  SlowEnd slow(24);
  EXPECT_EQ(run("run", on_demand, {.observer = &slow}).exit, Exit::interrupted);
  EXPECT_EQ(run("run", longer, {.resume = true}).exit, Exit::done);
  run("whole", longer);
  expect_same("run", "whole", 40);
}

TEST_F(ExperimentTest, ALastStepOnceOwedMakesNoDifferenceToALongerRun) {
  // Of 24 steps the last is due for nothing but being the last, of 25 for its layer rows in any run.
  for (const std::string steps : {"24", "25"}) {
    const Words shorter = {on_demand[0], "train.steps=" + steps}, longer = {on_demand[0], "train.steps=40"};
    const std::string name = "run" + steps;
    SlowEnd slow(std::stoll(steps));
    EXPECT_EQ(run(name, shorter, {.observer = &slow}).exit, Exit::interrupted);
    EXPECT_EQ(run(name, shorter, {.resume = true}).exit, Exit::done);
    EXPECT_EQ(run(name, longer, {.resume = true}).exit, Exit::done);
    if (steps == "24") run("whole", longer);
    expect_same(name, "whole", 40);
  }
}

TEST_F(ExperimentTest, KilledBeforeTheFirstStepOfMoreItStillGoesOnFromTheEnd) {
  // Rows that only the last of 24 steps was due are cut off by then, and the checkpoint of 24 is the only one.
  run("run", {});
  class AtRestoring final : public Observer {
   public:
    void restore(const SavedState&) override { ::raise(SIGTERM); }
    void step_done(const StepResult&) override {}
  } at_once;
  const Words longer = {"train.steps=40"};
  EXPECT_EQ(run("run", longer, {.resume = true, .observer = &at_once}).exit, Exit::interrupted);
  EXPECT_EQ(run("run", longer, {.resume = true}).exit, Exit::done);
  EXPECT_EQ(json("run", "manifest.json")["resumed"][1]["step"], 24) << said_;
  run("whole", longer);
  expect_same("run", "whole", 40);
}

TEST_F(ExperimentTest, ASignalBeforeTheFirstStepLeavesAFolderToResume) {
  run("whole", {});
  // Sent while the stack is built: whoever waits for the first step is told at once.
  class AtOnce final : public Observer {
   public:
    void begin() override { ::raise(SIGUSR1); }
    void step_done(const StepResult&) override {}
  } at_once;
  EXPECT_EQ(run("run", {}, {.observer = &at_once}).exit, Exit::interrupted);
  EXPECT_EQ(json("run", "manifest.json")["reason"], "SIGUSR1 after step 0");
  EXPECT_THAT(checkpoints("run"), IsEmpty());
  run("run", {}, {.resume = true});
  expect_same("run", "whole", 24);
}

}  // namespace
}  // namespace gradflow::testing
