// The whole program: what `bench` measures and says. Never how fast anything is.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <vector>

#include "testing/run_of_program.h"

namespace gradflow::testing {
namespace {

using namespace ::testing;

class Bench : public ProgramTest {
 protected:
  Outcome bench(const Words& words) { return run_gradflow(Words{"bench", tiny()} + words); }
  nlohmann::json json(const Words& words) {
    const Outcome outcome = bench(Words{"--json"} + words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out);
  }
  static Words backends(const nlohmann::json& json) {
    Words found;
    for (const nlohmann::json& result : json["results"])
      found.push_back(result["backend"].get<std::string>() + " " + result["recording"].get<std::string>());
    return found;
  }
};

TEST_F(Bench, EveryBackendThatServesIsTimedWithAndWithoutRecording) {
  const nlohmann::json json = this->json({"--repeat", "3", "--steps", "2"});
  EXPECT_THAT(backends(json), ElementsAre("aten standard", "aten none", "fused standard", "fused none"));
  for (const nlohmann::json& result : json["results"]) {
    SCOPED_TRACE(result.dump());
    ASSERT_EQ(result["ms"].size(), 3u);
    const auto times = result["ms"].get<std::vector<double>>();
    EXPECT_EQ(result["ms_min"], *std::min_element(times.begin(), times.end()));
    EXPECT_GE(result["ms_median"].get<double>(), result["ms_min"].get<double>());
    EXPECT_GT(result["ms_min"].get<double>(), 0);
    // 4 sequences of 8 tokens.
    EXPECT_NEAR(result["tokens_per_s"].get<double>() * result["ms_min"].get<double>(), 32e3, 1e-6);
    EXPECT_NEAR(result["gemm_share"].get<double>() * result["ms_min"].get<double>(),
                json["matrix_products"]["ms_min"].get<double>(), 1e-9);
    EXPECT_GT(result["memory_bytes"].get<double>(), 2e7);
    EXPECT_GT(result["start_up_s"].get<double>(), 0);
    EXPECT_EQ(result.contains("recording_cost"), result["recording"] == "standard");
  }
  for (const char* fact : {"cpu", "cores", "device", "threads", "libtorch", "blas", "simd", "compiler", "git_revision"})
    EXPECT_TRUE(json["machine"].contains(fact)) << fact;
  EXPECT_EQ(json["config"]["model"]["depth"], 2);
}

TEST_F(Bench, PhasesAddUpToTheStep) {
  const Words few = {"--steps-only", "--repeat", "3", "--steps", "2"};
  // Wide enough that what a step does between its phases is little of it.
  const nlohmann::json with_phases = json(few + Words{"--phases"} + set({"model.width=64", "data.context=32"}));
  for (const nlohmann::json& result : with_phases["results"]) {
    SCOPED_TRACE(result.dump());
    double sum = 0, shares = 0;
    for (const auto& [name, phase] : result["phases"].items()) {
      sum += phase["ms"].get<double>();
      shares += phase["share"].get<double>();
    }
    EXPECT_NEAR(sum, result["ms_min"].get<double>(), 1e-9);
    EXPECT_NEAR(shares, 1, 1e-9);
    // The rest is what the phases leave of the step: none of them is counted twice, and none of the large ones is lost.
    EXPECT_GE(result["phases"]["other"]["ms"].get<double>(), -1e-9);
    EXPECT_EQ(result["phases"].size(), 7u);
    for (const char* phase : {"data", "forward", "backward", "gradient_norms", "optimizer", "recording"})
      EXPECT_GT(result["phases"][phase]["ms"].get<double>(), 0) << phase;
    EXPECT_LT(result["phases"]["other"]["share"].get<double>(), 0.2);
  }
  EXPECT_FALSE(json(few)["results"][0].contains("phases"));
  EXPECT_THAT(bench(few + Words{"--phases"}).out, HasSubstr("gradient norms"));
}

TEST_F(Bench, NeedsTheMemoryOfARun) {
  const Outcome outcome = bench({"--set", "depth=100", "--set", "width=16384"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.error_lines(), ElementsAre(StartsWith("gradflow: error: the run needs about ")));
}

TEST_F(Bench, MemoryIsThatOfTheBackendAlone) {
  const Words large = {"--repeat",  "1",     "--steps",    "1",     "--set",
                       "width=256", "--set", "context=64", "--set", "batch=16"};
  const nlohmann::json alone = json(large + Words{"--backend", "fused"}), both = json(large);
  double together = 0;
  for (const nlohmann::json& result : both["results"])
    if (result["backend"] == "fused") together = result["memory_bytes"];
  EXPECT_NEAR(together / alone["results"][0]["memory_bytes"].get<double>(), 1, 0.05);
}

TEST_F(Bench, ABackendThatCannotServeIsLeftOutUnlessItIsNamed) {
  EXPECT_THAT(backends(json({"--steps-only", "--repeat", "1", "--steps", "1", "--set", "dropout=0.1"})),
              ElementsAre("aten standard", "aten none"));
  const Outcome named = bench({"--backend", "fused", "--set", "dropout=0.1"});
  EXPECT_EQ(named.code, 1);
  EXPECT_THAT(named.error_lines(), ElementsAre(AllOf(StartsWith("gradflow: error: --backend: fused cannot run this"),
                                                     HasSubstr("dropout"))));
  const Outcome none = bench({"--backend", "cudnn"});
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, AllOf(HasSubstr("--backend"), HasSubstr("fused")));
  EXPECT_THAT(backends(json({"--steps-only", "--repeat", "1", "--steps", "1", "--backend", "fused"})),
              ElementsAre("fused standard", "fused none"));
}

TEST_F(Bench, AStoppedOneLeavesNoTemporaryFolder) {
  const std::string temporary = folder_ / "temporary";
  create_folders(temporary);
  const auto is_empty = [&] { return std::filesystem::is_empty(temporary); };
  const Words while_steps_are_timed = {"--steps-only", "--repeat", "1000000"},
              while_memory_is_measured = {"--set", "accumulation=1000000"};
  for (const Words& when : {while_steps_are_timed, while_memory_is_measured})
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
      RunningProgram program(GRADFLOW_PROGRAM, Words{"bench", tiny()} + when,
                             {.folder = {}, .shell = "export TMPDIR=" + temporary});
      ASSERT_TRUE(in_time([&] { return !is_empty(); }));
      usleep(300'000);  // into the run whose files lie there
      program.kill(signal);
      EXPECT_EQ(program.wait().code, 128 + signal);
      EXPECT_TRUE(is_empty());
    }
}

TEST_F(Bench, TheTableForPeopleNamesEverything) {
  const Outcome outcome = bench({"--steps-only", "--repeat", "1", "--steps", "1"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* text : {"2 blocks, width 8, pre", "32 tokens a step", "matrix products alone", "GFLOP/s", "tokens/s",
                           "aten", "fused", "standard", "none"})
    EXPECT_THAT(outcome.out, HasSubstr(text));
}

TEST_F(Bench, AGemmShareAboveAHundredPercentIsCommentedBelowTheTable) {
  // Of one repeat on a machine that does other things as well it may be above or below.
  const Outcome outcome = bench({"--steps-only", "--repeat", "1", "--steps", "1"});
  const std::string table = outcome.out.substr(0, outcome.out.find("A GEMM share"));
  bool is_above = false;
  const std::regex share("([0-9]+) %");
  for (std::sregex_iterator found(table.begin(), table.end(), share), end; found != end; ++found)
    is_above = is_above || std::stoi((*found)[1]) > 100;
  EXPECT_EQ(outcome.out.find("A GEMM share above 100 %") != std::string::npos, is_above) << outcome.out;
}

TEST_F(Bench, EveryStackAndWhatOthersForbidCanBeTimed) {
  EXPECT_THAT(
      backends(json({"--steps-only", "--repeat", "1", "--steps", "1", "--set", "stack=mlp", "--set", "task=teacher"})),
      ElementsAre("aten standard", "aten none"));
  const nlohmann::json resnet = json({"--steps-only", "--repeat", "1", "--steps", "1", "--set", "stack=resnet", "--set",
                                      "task=cifar10", "--set", "depth=3", "--set", "data.side=8"});
  EXPECT_TRUE(resnet["results"][0]["gemm_share"].is_null()) << "convolutions are no such products";
  // Neither what the configuration records nor when it evaluates or saves plays a part.
  EXPECT_EQ(json({"--steps-only", "--repeat", "1", "--steps", "1", "--set", "record.tensors=true", "--set",
                  "quantities=none", "--set", "train.steps=1", "--set", "evaluate_every=1"})["results"]
                .size(),
            4u);
}

TEST_F(Bench, LeavesNothingBehind) {
  const std::string config = tiny();
  const Outcome outcome = run_gradflow({"bench", config, "--repeat", "1", "--steps", "1"},
                                       {.folder = folder_.path(), .shell = "export TMPDIR=" + folder_.path()});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  std::vector<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) left.push_back(entry.path().filename());
  EXPECT_THAT(left, ElementsAre("tiny.json"));
}

TEST_F(Bench, WhatCannotBeTimedIsAnErrorInOneLine) {
  const Outcome diverging =
      bench({"--steps-only", "--repeat", "1", "--set", "optimizer=sgd", "--set", "learning_rate=1e30"});
  EXPECT_EQ(diverging.code, 1);
  EXPECT_THAT(diverging.err, HasSubstr("not finite"));
  EXPECT_THAT(diverging.err, HasSubstr("learning_rate"));
  for (const Words& words : {Words{"--repeat", "0"}, Words{"--steps", "0"}, Words{"--repeat", "x"}, Words{"--stops"}})
    EXPECT_EQ(bench(words).code, 2) << words[0];
  const Outcome nowhere =
      run_gradflow({"bench", tiny(), "--repeat", "1"}, {.folder = {}, .shell = "export TMPDIR=/nowhere"});
  EXPECT_EQ(nowhere.code, 1);
  EXPECT_THAT(nowhere.err, HasSubstr("/nowhere: cannot hold a temporary folder"));
}

}  // namespace
}  // namespace gradflow::testing
