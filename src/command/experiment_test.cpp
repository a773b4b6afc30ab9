// One run, in this process: the checkpoints that it keeps, and what it refuses.

#include "command/experiment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "config/resolved.h"
#include "testing/experiment.h"
#include "testing/torture.h"
#include "train/checkpoint.h"
#include "train/recorder.h"
#include "train/summary.h"

namespace gradflow::testing {
namespace {

using namespace ::testing;
namespace fs = std::filesystem;

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

TEST_F(ExperimentTest, KeepsTheNewestCheckpoints) {
  run("run", {"checkpoint.every=5", "checkpoint.keep=3"});
  EXPECT_THAT(checkpoints("run"), ElementsAre("step-15.safetensors", "step-20.safetensors", "step-24.safetensors"));
  run("one", {"checkpoint.every=5", "checkpoint.keep=1"});
  EXPECT_THAT(checkpoints("one"), ElementsAre("step-24.safetensors"));
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
  EXPECT_THAT(checkpoints("run"), Contains("stopped-" + std::to_string(step) + ".safetensors"));
  const auto before = tables("run");
  EXPECT_TRUE(run("run", overrides, {.resume = true}).was_finished);
  // Killed before it could say so: it stops at the same step again.
  nlohmann::json manifest = json("run", "manifest.json");
  manifest["status"] = "running";
  write_file_atomically(path("run") + "/manifest.json", manifest.dump());
  EXPECT_EQ(run("run", overrides, {.resume = true}).exit, Exit::diverged);
  EXPECT_EQ(tables("run"), before);
}

TEST_F(ExperimentTest, ACheckpointHoldsThreeNumbersAParameterAndLittleElse) {
  // Also the source of the README's figures.
  Config config;
  config.name = "deep";
  config.model.depth = static_cast<std::int64_t>(rounds(10, 100));
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
}  // namespace gradflow::testing
