// One run, in this process: what is kept when it is interrupted, and how it goes on.

#include "command/experiment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "config/resolved.h"
#include "testing/experiment.h"
#include "testing/torture.h"
#include "train/checkpoint.h"
#include "train/recorder.h"
#include "train/summary.h"

namespace gradflow {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::ExperimentTest;
using ::testing::HasSubstr;
using testing::Interrupter;
using ::testing::Not;
using testing::SlowEnd;
using testing::Words;

TEST_F(ExperimentTest, EndsWithACheckpointThatHoldsEveryTensorByName) {
  run("run", {"optimizer=adamw"});
  EXPECT_THAT(checkpoints("run"), ElementsAre("step-24.safetensors"));
  const SafetensorsFile file(path("run") + "/checkpoint/step-24.safetensors");
  EXPECT_EQ(file.metadata().at("step"), "24");
  EXPECT_EQ(file.metadata().at("updates"), "24");
  EXPECT_EQ(file.metadata().at("tokens"), std::to_string(24 * 4 * 8));
  EXPECT_EQ(nlohmann::json::parse(file.metadata().at("config"))["model"]["depth"], 2);
  const TensorPlace* weight = file.find("block.1.ffn.in.weight");
  ASSERT_NE(weight, nullptr);
  EXPECT_THAT(weight->shape, ElementsAre(32, 8));
  for (const char* name : {"first_moment.block.1.ffn.in.weight", "second_moment.block.1.ffn.in.weight"}) {
    ASSERT_NE(file.find(name), nullptr) << name;
    EXPECT_EQ(file.find(name)->shape, weight->shape);
  }
}

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

TEST_F(ExperimentTest, KeepsTheNewestCheckpoints) {
  run("run", {"checkpoint.every=5", "checkpoint.keep=3"});
  EXPECT_THAT(checkpoints("run"), ElementsAre("step-15.safetensors", "step-20.safetensors", "step-24.safetensors"));
  run("one", {"checkpoint.every=5", "checkpoint.keep=1"});
  EXPECT_THAT(checkpoints("one"), ElementsAre("step-24.safetensors"));
}

/// A run that is interrupted twice equals one that never was, whatever is trained.
class ResumeTest : public ExperimentTest, public ::testing::WithParamInterface<Words> {};

TEST_P(ResumeTest, EqualsTheUninterruptedRunBitForBit) {
  const Words& overrides = GetParam();
  run("whole", overrides);
  EXPECT_EQ(run_until(6, "parts", overrides).exit, Exit::interrupted);
  EXPECT_EQ(run_until(17, "parts", overrides, true).exit, Exit::interrupted);
  EXPECT_EQ(run("parts", overrides, {.resume = true}).exit, Exit::done);
  expect_same("parts", "whole", 24);
}

INSTANTIATE_TEST_SUITE_P(
    Transformer, ResumeTest,
    ::testing::Values(Words{}, Words{"optimizer=sgd", "momentum=0.9"}, Words{"optimizer=adam", "weight_decay=0.1"},
                      Words{"accumulation=3", "padding_fraction=0.25"},
                      Words{"norm=batchnorm", "placement=post", "accumulation=2"}, Words{"dtype=float64"},
                      Words{"dtype=bfloat16"}, Words{"recompute=true", "depth=3"},
                      Words{"branch_warmup=20", "warmup=10", "decay=cosine"},
                      Words{"tie_embeddings=true", "clip_norm=0.5"}, Words{"placement=resi_dual"},
                      Words{"residual=layerscale", "initialization=fixup", "norm=none", "placement=none"},
                      Words{"steps_every=4", "layers_every=100"}, Words{"quantities=none"},
                      Words{"on_nonfinite=skip"}));

INSTANTIATE_TEST_SUITE_P(
    Tasks, ResumeTest,
    ::testing::Values(Words{"task=copy"}, Words{"task=reverse"}, Words{"task=sort"}, Words{"task=majority"},
                      Words{"task=modular"}, Words{"task=random"}, Words{"task=quadratic"},
                      Words{"task=text", "data.files=README.md", "data.vocabulary=256"},
                      Words{"task=text", "data.files=README.md", "tokenizer=character", "data.vocabulary=null"}));

INSTANTIATE_TEST_SUITE_P(Feedforward, ResumeTest,
                         ::testing::Values(Words{"stack=mlp", "task=teacher", "dropout=0"},
                                           Words{"stack=mlp", "task=clusters", "norm=batchnorm", "dropout=0"},
                                           Words{"stack=mlp", "task=identity", "dropout=0"},
                                           Words{"stack=resnet", "task=cifar10", "depth=3", "norm=batchnorm",
                                                 "dropout=0", "side=8"}));

/// Loss spikes at steps 18 and 22 by a learning rate far too high: an episode is open at the cuts.
TEST_F(ExperimentTest, SpikesInProgressGoOn) {
  const Words overrides = {"steps=60",
                           "learning_rate=0.3",
                           "record.spikes.min_count=4",
                           "record.spikes.window=8",
                           "record.spikes.level_window=3",
                           "record.spikes.min_jump_loss=0.01",
                           "record.spikes.threshold=2",
                           "record.spikes.min_jump_grad_norm=0.05"};
  run("whole", overrides);
  const std::string spikes = read_file(path("whole") + "/spikes.csv");
  ASSERT_GT(std::count(spikes.begin(), spikes.end(), '\n'), 3) << "no spikes to go on with";
  std::size_t open = 0;
  for (const std::int64_t cut : {11, 17, 23, 31, 44}) {
    const std::string name = "cut" + std::to_string(cut);
    run_until(cut, name, overrides);
    // The row of an open episode is not there yet.
    std::istringstream rows(spikes);
    for (std::string row; std::getline(rows, row);) {
      std::vector<std::string> cells;
      std::istringstream line(row);
      for (std::string cell; std::getline(line, cell, ',');) cells.push_back(cell);
      if (cells.size() > 4 && cells[2] != "start_step" && std::stoll(cells[2]) <= cut && std::stoll(cells[4]) >= cut)
        ++open;
    }
    run(name, overrides, {.resume = true});
    expect_same(name, "whole", 60);
  }
  EXPECT_GT(open, 0u) << "no cut within an episode";
}

TEST_F(ExperimentTest, WeightsAloneWouldNotDo) {
  // What a resumed run would be if the moments were not restored.
  run("whole", {});
  run_until(12, "parts", {});
  const std::string file = path("parts") + "/checkpoint/step-12.safetensors";
  {
    const SafetensorsFile there(file);
    std::vector<std::string> bytes;
    std::vector<TensorContent> contents;
    for (const TensorPlace& place : there.tensors()) {
      bytes.emplace_back(place.end - place.begin, '\0');
      if (place.name.find("_moment.") == std::string::npos)
        there.read(place, std::as_writable_bytes(std::span(bytes.back())));
    }
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const TensorPlace& place = there.tensors()[i];
      contents.push_back({place.name, place.type, place.shape, std::as_bytes(std::span(bytes[i]))});
    }
    Metadata metadata = there.metadata();
    metadata.erase("checksum");
    write_safetensors(file, metadata, contents);
  }
  run("parts", {}, {.resume = true});
  EXPECT_NE(tables("parts"), tables("whole"));
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

TEST_F(ExperimentTest, InOtherSurroundingsOneLineSaysThatBitsAreNotPromised) {
  run_until(8, "run", {});
  run_until(12, "run", {}, true);
  EXPECT_THAT(said_, Not(HasSubstr("last digits"))) << "nothing has changed";
  nlohmann::json manifest = json("run", "manifest.json");
  manifest["libtorch"] = "1.0.0";
  manifest["cpu"] = "another";
  write_file_atomically(path("run") + "/manifest.json", manifest.dump());
  EXPECT_EQ(run("run", {"threads=2"}, {.resume = true}).exit, Exit::done);
  EXPECT_THAT(said_, ::testing::ContainsRegex("warning: compute.threads 1 → 2, libtorch 1.0.0 → [^\n]*, cpu another → "
                                              "[^\n]*: from here on the last digits may differ from those of a run"));
  manifest = json("run", "manifest.json");
  EXPECT_FALSE(manifest["resumed"][0].contains("changed"));
  EXPECT_EQ(manifest["resumed"][1]["changed"].size(), 2u);
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
  EXPECT_THAT(checkpoints("run"), ::testing::IsEmpty());
  run("run", {}, {.resume = true});
  expect_same("run", "whole", 24);
}

TEST_F(ExperimentTest, TornLinesAndRowsBehindTheCheckpointAreCutOff) {
  run("whole", {});
  run_until(12, "parts", {});
  for (const char* file : {"steps.csv", "layers.csv", "tensors.csv", "spikes.csv", "timing.csv"})
    std::ofstream(path("parts") + '/' + file, std::ios::app) << "13,9,whatever\n14,torn";
  run("parts", {}, {.resume = true});
  expect_same("parts", "whole", 24);
}

TEST_F(ExperimentTest, ADamagedCheckpointGivesWayToTheOneBefore) {
  run("whole", {});
  run_until(17, "cut", {"checkpoint.every=5"});
  ASSERT_THAT(checkpoints("cut"), ElementsAre("step-15.safetensors", "step-17.safetensors"));
  const auto spoil = [&](const std::string& name, const std::string& checkpoint, bool truncate) {
    const std::string file = path(name) + "/checkpoint/" + checkpoint;
    std::string bytes = read_file(file);
    if (truncate)
      bytes.resize(bytes.size() / 2);
    else
      bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 4);
    write_file_atomically(file, bytes);
  };
  for (const bool truncate : {false, true}) {
    const std::string name = truncate ? "truncated" : "flipped";
    fs::copy(path("cut"), path(name), fs::copy_options::recursive);
    spoil(name, "step-17.safetensors", truncate);
    run(name, {"checkpoint.every=5"}, {.resume = true});
    EXPECT_THAT(said_, AllOf(HasSubstr("warning: " + path(name) + "/checkpoint/step-17.safetensors: is damaged ("),
                             HasSubstr("going on from the checkpoint before, of step 15")));
    expect_same(name, "whole", 24);
  }
  // With none left it begins again.
  spoil("cut", "step-15.safetensors", true);
  spoil("cut", "step-17.safetensors", false);
  run("cut", {"checkpoint.every=5"}, {.resume = true});
  EXPECT_THAT(said_, HasSubstr("starting again from step 1"));
  expect_same("cut", "whole", 24);
}

TEST_F(ExperimentTest, ATableThatHasLostRowsMakesItsCheckpointUseless) {
  run("whole", {});
  run_until(17, "cut", {"checkpoint.every=5"});
  fs::resize_file(path("cut") + "/layers.csv", fs::file_size(path("cut") + "/layers.csv") - 1);
  run("cut", {"checkpoint.every=5"}, {.resume = true});
  EXPECT_THAT(said_, HasSubstr("layers.csv has "));
  expect_same("cut", "whole", 24);
}

TEST_F(ExperimentTest, OtherColumnsAreNeverMixed) {
  run_until(12, "run", {});
  std::string steps = read_file(path("run") + "/steps.csv");
  steps.replace(0, 4, "stop");
  write_file_atomically(path("run") + "/steps.csv", steps);
  const std::string manifest = read_file(path("run") + "/manifest.json");
  EXPECT_THAT(error_of("run", {}, {.resume = true}), HasSubstr("steps.csv:1: has other columns than this version"));
  EXPECT_EQ(read_file(path("run") + "/steps.csv"), steps);
  EXPECT_EQ(read_file(path("run") + "/manifest.json"), manifest);
  EXPECT_THAT(checkpoints("run"), ElementsAre("step-12.safetensors"));
}

TEST_F(ExperimentTest, MoreStepsGoOnFromTheEndAndEqualALongRun) {
  // 24 is due for nothing, 25 for a layer row, 28 for an evaluation: the last step writes rows that it would not have
  // written, or would have written otherwise, in the middle of a run.
  for (const std::string steps : {"24", "25", "28"})
    for (const std::string every : {"1", "4"}) {
      const Words settings = {"record.steps_every=" + every, "learning_rate=0.05"};
      Words shorter = settings, longer = settings;
      shorter.push_back("train.steps=" + steps);
      longer.push_back("train.steps=40");
      const std::string name = "run" + steps + every, whole = "whole" + steps + every;
      EXPECT_EQ(run(name, shorter).exit, Exit::done);
      EXPECT_THAT(error_of(name, longer), HasSubstr("train.steps " + steps + " → 40; go on with --resume"));
      EXPECT_EQ(run(name, longer, {.resume = true}).exit, Exit::done);
      run(whole, longer);
      expect_same(name, whole, 40);
      EXPECT_EQ(json(name, "config.json")["train"]["steps"], 40);
      EXPECT_EQ(json(name, "manifest.json")["resumed"][0]["step"], std::stoi(steps));
      EXPECT_TRUE(run(name, longer).was_finished);
    }
}

TEST_F(ExperimentTest, AnotherConfigurationIsNotResumed) {
  run_until(12, "run", {});
  const std::string error = error_of("run", {"depth=3", "train.batch=8"}, {.resume = true});
  EXPECT_THAT(error, AllOf(HasSubstr("model.depth 2 → 3, train.batch 4 → 8; --resume may change only"),
                           HasSubstr(path("run") + ": ")));
  EXPECT_EQ(error_of("run", {"threads=2"}, {.resume = true}), "no error");
  EXPECT_THAT(said_, HasSubstr("warning: compute.threads 1 → 2"));
}

TEST_F(ExperimentTest, TimesOfAResumedRunAddUp) {
  run_until(12, "run", {});
  const std::string before = json("run", "manifest.json")["started"];
  std::istringstream rows(read_file(path("run") + "/timing.csv"));
  double seconds = 0;
  for (std::string row; std::getline(rows, row);)
    if (row.starts_with("12,")) seconds = std::stod(row.substr(3));
  ASSERT_GT(seconds, 0);
  run("run", {}, {.resume = true});
  std::istringstream all(read_file(path("run") + "/timing.csv"));
  double last = 0;
  std::size_t count = 0;
  for (std::string row; std::getline(all, row);) {
    if (row.starts_with("step")) continue;
    const double time = std::stod(row.substr(row.find(',') + 1));
    EXPECT_GT(time, last) << row;
    last = time;
    ++count;
  }
  EXPECT_EQ(count, 24u);
  EXPECT_GT(last, seconds);
  const auto manifest = json("run", "manifest.json");
  EXPECT_EQ(manifest["started"], before);
  ASSERT_EQ(manifest["resumed"].size(), 1u);
  EXPECT_EQ(manifest["resumed"][0]["step"], 12);
  EXPECT_EQ(manifest["status"], "finished");
}

TEST_F(ExperimentTest, WeightsThatAreNotFiniteAreNeverKept) {
  const Words overrides = {"learning_rate=1e30", "on_nonfinite=continue", "norm=none", "placement=none",
                           "checkpoint.every=1"};
  EXPECT_EQ(run("run", overrides).exit, Exit::done);
  EXPECT_THAT(said_, HasSubstr("the weights are not finite"));
  for (const std::string& name : checkpoints("run")) {
    const SafetensorsFile file(path("run") + "/checkpoint/" + name);
    for (const TensorPlace& place : file.tensors()) {
      if (place.name.starts_with("state.") || place.name.find("moment.") != std::string::npos) continue;
      std::vector<float> values((place.end - place.begin) / sizeof(float));
      file.read(place, std::as_writable_bytes(std::span(values)));
      EXPECT_TRUE(std::all_of(values.begin(), values.end(), [](float x) { return std::isfinite(x); })) << place.name;
    }
  }
}

TEST_F(ExperimentTest, ADivergedRunKeepsItsLastFiniteWeightsAndIsOver) {
  const Words overrides = {"learning_rate=1e30", "norm=none", "placement=none", "checkpoint.every=1"};
  EXPECT_EQ(run("run", overrides).exit, Exit::diverged);
  const std::int64_t step = json("run", "summary.json")["nonfinite"]["step"];
  EXPECT_THAT(checkpoints("run"), ::testing::Contains("stopped-" + std::to_string(step) + ".safetensors"));
  const auto before = tables("run");
  EXPECT_TRUE(run("run", overrides, {.resume = true}).was_finished);
  // Killed before it could say so: it stops at the same step again.
  nlohmann::json manifest = json("run", "manifest.json");
  manifest["status"] = "running";
  write_file_atomically(path("run") + "/manifest.json", manifest.dump());
  EXPECT_EQ(run("run", overrides, {.resume = true}).exit, Exit::diverged);
  EXPECT_EQ(tables("run"), before);
}

TEST_F(ExperimentTest, KilledBetweenItsLastCheckpointAndItsEndItIsOnlyClosed) {
  run("whole", {"learning_rate=0.1"});
  run("run", {"learning_rate=0.1"});
  nlohmann::json manifest = json("run", "manifest.json");
  manifest["status"] = "running";
  write_file_atomically(path("run") + "/manifest.json", manifest.dump());
  remove_file(path("run") + "/summary.json");
  EXPECT_EQ(run("run", {"learning_rate=0.1"}, {.resume = true}).exit, Exit::done);
  expect_same("run", "whole", 24);
}

TEST_F(ExperimentTest, AFinishedRunWhoseResultsAreDamagedIsMadeWhole) {
  run("whole", {"learning_rate=0.1"});
  run("run", {"learning_rate=0.1"});
  for (const std::string name : {"summary.json", "steps.csv", "layers.csv", "spikes.csv", "timing.csv"})
    for (const bool is_there : {true, false}) {
      SCOPED_TRACE(name);
      remove_file(path("run") + '/' + name);
      if (is_there) write_file_atomically(path("run") + '/' + name, "{\"cut");
      EXPECT_THAT(error_of("run", {"learning_rate=0.1"}), HasSubstr(name + " is missing or damaged"));
      const ExperimentResult result = run("run", {"learning_rate=0.1"}, {.resume = true});
      EXPECT_EQ(result.exit, Exit::done);
      EXPECT_FALSE(result.was_finished);
      EXPECT_THAT(said_, HasSubstr("run/" + name + ": missing or damaged; the finished run is made whole"));
      // Weights, moments and tables are all there: a summary costs no step.
      if (name == "summary.json") {
        EXPECT_THAT(said_, HasSubstr("going on after step 24"));
      }
      expect_same("run", "whole", 24);
    }
  EXPECT_TRUE(run("run", {"learning_rate=0.1"}).was_finished);
}

TEST_F(ExperimentTest, ResumingAnEmptyFolderOrOneWithoutCheckpointsStartsAtStepOne) {
  run("whole", {});
  create_folders(path("empty"));
  run("empty", {}, {.resume = true});
  expect_same("empty", "whole", 24);
  run_until(8, "cut", {});
  fs::remove_all(path("cut") + "/checkpoint");
  run("cut", {}, {.resume = true});
  expect_same("cut", "whole", 24);
}

TEST_F(ExperimentTest, ACheckpointHoldsThreeNumbersAParameterAndLittleElse) {
  // Also the source of the README's figures.
  Config config;
  config.name = "deep";
  config.model.depth = static_cast<std::int64_t>(testing::rounds(10, 100));
  config = resolved(config);
  Stack stack(config, at::kCPU);
  RunAccount account;
  Recorder recorder(config, stack, at::kCPU, folder_.path());
  recorder.begin();
  Checkpoints checkpoints(folder_.path(), config, stack.store(), {&recorder, &account}, [](std::string_view) {});
  std::vector<double> seconds;
  for (std::int64_t step = 1; step <= 5; ++step) {
    const auto start = std::chrono::steady_clock::now();
    checkpoints.save({.step = step, .tokens = step, .updates = step});
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::sort(seconds.begin(), seconds.end());
  const auto bytes = static_cast<double>(fs::file_size(folder_ / "checkpoint/step-5.safetensors"));
  const auto numbers = static_cast<double>(3 * stack.layout().parameter_count());
  EXPECT_GE(bytes, 4 * numbers);
  EXPECT_LT(bytes, 4.5 * numbers);
  std::printf("[ torture  ] checkpoint at depth %d, width 64: %.1f MB, saved in %.3f s (median of 5)\n",
              static_cast<int>(config.model.depth), bytes / 1e6, seconds[2]);
}

TEST_F(ExperimentTest, MoreMemoryThanIsFreeIsRefusedUnlessForced) {
  const Words overrides = {"depth=100", "width=16384", "steps=1"};  // 1.3 TB of weights
  EXPECT_THAT(error_of("run", overrides), AllOf(HasSubstr("the run needs about "), HasSubstr("--force")));
  EXPECT_FALSE(fs::exists(path("run")));
}

}  // namespace
}  // namespace gradflow
