// The whole program: that runs repeat, how they are scheduled, what they train on and how large they may be.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "testing/run_of_program.h"

namespace gradflow::testing {
namespace {

using namespace ::testing;

class Training : public ProgramTest {
 protected:
  /// A text to train on, and a configuration for it.
  std::string text_config(const std::string& text) {
    write("text.txt", text);
    return write("text.json",
                 R"({"model": {"depth": 1, "width": 8, "heads": 2}, "data": {"task": "text", "context": 8,)"
                 R"( "files": ["text.txt"]}, "train": {"steps": 3, "batch": 4}})");
  }
};

/// The files of a run that must be the same, byte for byte, when it is run again.
Words repeatable_files(const RunFiles& run) {
  Words names;
  for (const auto& entry : std::filesystem::directory_iterator(run.path)) {
    const std::string name = entry.path().filename().string();
    if ((name.ends_with(".csv") && name != "timing.csv") || name == "config.json") names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

void expect_same_files(const RunFiles& a, const RunFiles& b) {
  const Words names = repeatable_files(a);
  EXPECT_EQ(names, repeatable_files(b));
  EXPECT_THAT(names, IsSupersetOf({"config.json", "layers.csv", "spikes.csv", "steps.csv"}));
  for (const std::string& name : names) EXPECT_EQ(read_file(a.file(name)), read_file(b.file(name))) << name;
}

TEST_F(Training, TheSameRunTwiceWritesTheSameBytes) {
  const Words overrides = {"dropout=0.1", "tensors=true", "layers_every=1", "evaluate_every=2"};
  expect_same_files(run(tiny(), overrides, "first"), run(tiny(), overrides, "second"));
  const RunFiles other = run(tiny(), overrides + Words{"seed=2"}, "third");
  EXPECT_NE(read_file(folder_ / "first/steps.csv"), read_file(other.file("steps.csv")));
}

TEST_F(Training, AResolvedConfigurationRepeatsItsRun) {
  const RunFiles markov =
      run(tiny(), {"placement=deepnorm", "betas=[0.8, 0.9]", "learning_rate=0.1e-2", "warmup=2"}, "markov");
  expect_same_files(markov, run(markov.file("config.json"), {}, "markov again"));
  // A text is found from anywhere, for its path is absolute in the resolved file.
  const RunFiles text = run(text_config(std::string(50, 'a') + std::string(50, 'b')), {"tokenizer=character"}, "text");
  EXPECT_EQ(text.json("config.json")["data"]["files"][0], folder_ / "text.txt");
  const Outcome again =
      run_gradflow({"run", text.file("config.json"), "--out", folder_ / "text again"}, {.folder = "/"});
  EXPECT_EQ(again.code, 0) << again.err;
  expect_same_files(text, {folder_ / "text again"});
}

TEST_F(Training, TheDataDoNotChangeTheInitialWeights) {
  const auto weight_norms = [&](const Words& overrides, const std::string& out) {
    return column(run(tiny(), overrides + Words{"learning_rate=0", "steps=1", "tensors=true"}, out).tensors(),
                  "weight_norm");
  };
  const Words markov = weight_norms({}, "markov");
  EXPECT_EQ(weight_norms({"task=random"}, "random"), markov);
  EXPECT_EQ(weight_norms({"data.seed=5"}, "chain"), markov);
  EXPECT_EQ(weight_norms({"batch=2"}, "batch"), markov);
  EXPECT_NE(weight_norms({"seed=2"}, "seed"), markov);
}

TEST_F(Training, WarmUpWastesNoStepAndCountsOptimizerSteps) {
  const Words overrides = {"learning_rate=0.1", "warmup=4"};
  const CsvTable steps = run(tiny(), overrides, "one").steps();
  for (std::size_t row = 0; row < 5; ++row)
    EXPECT_DOUBLE_EQ(number(steps, row, "learning_rate"), 0.1 * std::min(1.0, static_cast<double>(row + 1) / 4));
  EXPECT_GT(number(steps, 0, "update_norm"), 0);
  const CsvTable accumulated = run(tiny(), overrides + Words{"accumulation=4"}, "four").steps();
  EXPECT_EQ(column(accumulated, "learning_rate"), column(steps, "learning_rate"));
  EXPECT_EQ(number(accumulated, 4, "tokens"), 4 * number(steps, 4, "tokens"));
  // A mean over tokens, not a sum over micro-batches.
  EXPECT_NEAR(number(accumulated, 0, "loss") / number(steps, 0, "loss"), 1, 0.5);
}

TEST_F(Training, ClippingIsLoggedBesideTheUnclippedNorm) {
  const RunFiles run = this->run(tiny(), {"clip_norm=0.1"});
  const CsvTable steps = run.steps();
  for (std::size_t row = 0; row < steps.rows(); ++row) {
    EXPECT_GT(number(steps, row, "grad_norm"), 0.1);
    EXPECT_DOUBLE_EQ(number(steps, row, "clip_factor"), 0.1 / number(steps, row, "grad_norm"));
  }
  EXPECT_EQ(run.json("summary.json")["clipped_steps"], 5);
  EXPECT_THAT(column(this->run(tiny(), {}, "without").steps(), "clip_factor"), Each(std::string("1")));
}

TEST_F(Training, SmallNumbersKeepTheirDigits) {
  const RunFiles run = this->run(tiny(), {"learning_rate=9.67e-5"});
  EXPECT_THAT(column(run.steps(), "learning_rate"), Each(AnyOf("9.67e-5", "9.67e-05")));
  EXPECT_EQ(number(run.steps(), 0, "learning_rate"), 9.67e-5);
}

TEST_F(Training, WeightDecayActsOnMatricesOnly) {
  // Nothing but decay moves a weight whose gradient is zero: with branches off, those of the blocks have none.
  const RunFiles run =
      this->run(tiny(), {"branch_scale=0", "weight_decay=0.1", "tensors=true", "steps=1", "dtype=float64"});
  const CsvTable tensors = run.tensors();
  std::size_t matrices = 0, others = 0;
  for (std::size_t row = 0; row < tensors.rows(); ++row) {
    const std::string name(tensors.text(row, 1));
    if (!name.starts_with("block.")) continue;
    const bool norm = name.find("norm") != std::string::npos;
    if (name.ends_with(".weight") && !norm) {
      EXPECT_NEAR(number(tensors, row, "update_ratio"), 1e-4, 1e-12) << name;  // learning rate · decay
      ++matrices;
    } else {
      EXPECT_EQ(number(tensors, row, "update_norm"), 0) << name;
      ++others;
    }
  }
  EXPECT_EQ(matrices, 12u);
  EXPECT_GT(others, 12u);
  EXPECT_EQ(run.json("config.json")["train"]["weight_decay"], 0.1);
}

TEST_F(Training, TextIsTakenByteByByte) {
  std::string text = "\xEF\xBB\xBF";
  for (int line = 0; line < 100; ++line) text += "ab\r\n";
  text += "\r";
  const RunFiles run = this->run(text_config(text), {});
  const auto summary = run.json("summary.json");
  EXPECT_EQ(summary["text"]["bytes"], 404);  // of the file
  EXPECT_EQ(summary["text"]["tokens"], 401);
  EXPECT_EQ(summary["text"]["distinct_tokens"], 4);
  EXPECT_NEAR(summary["unigram_entropy"].get<double>(), std::log(4), 1e-3);
  EXPECT_NEAR(summary["log_vocabulary"].get<double>(), std::log(256), 1e-12);
}

TEST_F(Training, OtherPlacesForTheTextAreTheCurrentFolder) {
  const std::string config = text_config(std::string(200, 'a'));
  create_folders(folder_ / "elsewhere");
  write("elsewhere/my.txt", std::string(300, 'b') + std::string(300, 'c'));
  const Outcome outcome = run_gradflow({"run", config, "--set", "data.files=my.txt", "--out", folder_ / "run"},
                                       {.folder = folder_ / "elsewhere"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(RunFiles{folder_ / "run"}.json("summary.json")["text"]["bytes"], 600);
}

TEST_F(Training, AnotherContentOfTheSameFileIsAnotherRun) {
  const std::string config = text_config(std::string(200, 'a'));
  run(config, {});
  write("text.txt", std::string(200, 'b'));
  const Outcome outcome = run_gradflow(command(config, {}));
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.error_lines(), ElementsAre(HasSubstr("holds a run of another configuration")));
}

TEST_F(Training, ASmallHeadStartsNearTheLogarithmOfTheVocabulary) {
  const auto summary = run(tiny(), {"initialization=normal", "vocabulary=64", "steps=1"}).json("summary.json");
  EXPECT_NEAR(summary["first_loss"].get<double>(), summary["log_vocabulary"].get<double>(), 0.01);
}

TEST_F(Training, EveryTaskAndNumberFormatRuns) {
  for (const std::string task : {"copy", "reverse", "sort", "majority", "modular", "random", "quadratic"}) {
    const RunFiles run = this->run(tiny(), {"task=" + task, "steps=2", "evaluate_every=1"}, task);
    EXPECT_EQ(run.steps().rows(), 2u) << task;
  }
  const double single = number(run(tiny(), {}, "single").steps(), 4, "loss");
  EXPECT_NEAR(number(run(tiny(), {"dtype=float64"}, "double").steps(), 4, "loss") / single, 1, 1e-4);
  EXPECT_NEAR(number(run(tiny(), {"dtype=bfloat16"}, "brain").steps(), 4, "loss") / single, 1, 0.02);
}

TEST_F(Training, AThousandBlocksNeedNoDeepStack) {
  const Words overrides = {"depth=1000", "width=16", "steps=2"};
  const Outcome outcome = run_gradflow(command("configs/quickstart.json", overrides), {.shell = "ulimit -s 1024"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(integers(RunFiles{folder_ / "run"}.layers(), "layer").back(), 1001);
}

TEST_F(Training, ARunTakesTheMemoryThatDescribeSays) {
  const std::string config = write("wide.json", R"({"model": {"depth": 12, "width": 64}, "data": {"context": 64},)"
                                                R"( "train": {"batch": 64, "steps": 2}})");
  for (const char* backend : {"aten", "fused"}) {
    const std::string choice = std::string("compute.backend=") + backend;
    const Outcome described = run_gradflow({"describe", config, "--json", "--set", choice});
    ASSERT_EQ(described.code, 0) << described.err;
    const double expected = nlohmann::json::parse(described.out).at("memory_bytes").at("total");
    std::filesystem::remove_all(folder_ / "run");
    const Outcome outcome = run_gradflow(command(config, {choice}));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_NEAR(expected / static_cast<double>(outcome.peak_memory), 1, 0.15) << backend;
  }
}

TEST_F(Training, AThousandBlocksStayBelowTheirMemory) {
  const std::string config =
      write("deep.json", R"({"model": {"depth": 1000, "width": 64}, "data": {"context": 64},)"
                         R"( "train": {"batch": 8, "steps": 1}, "compute": {"recompute": true}})");
  // Weights and gradients are 0.40 GB, Adam's moments as much again.
  for (const auto& [optimizer, bound] : {std::pair("sgd", 0.9e9), {"adamw", 1.1e9}}) {
    const Outcome outcome = run_gradflow(command(config, {std::string("optimizer=") + optimizer}, optimizer));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_LT(outcome.peak_memory, bound) << optimizer;
  }
}

}  // namespace
}  // namespace gradflow::testing
