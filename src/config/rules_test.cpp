#include "config/rules.h"

#include <gtest/gtest.h>

#include "config/load.h"
#include "core/error.h"

namespace gradflow {
namespace {

using Lines = std::vector<std::string>;

/// What is wrong with the defaults under these overrides, without the place.
Lines faults(std::vector<std::string> overrides) {
  try {
    parse_config("{}", "a.json", overrides);
  } catch (const Error& error) {
    Lines lines = error.lines();
    for (std::string& line : lines) line = line.substr(line.find(": ") + 2);
    return lines;
  }
  return {};
}

struct Refusal {
  std::vector<std::string> overrides;
  std::string fault;
};

TEST(Combinations, ThatCannotBeBuiltAreRefusedWithWhatCan) {
  const std::vector<Refusal> refusals{
      {{"model.heads=6"}, "6 does not divide model.width 64; write a divisor: 1, 2, 4, 8, 16, 32, 64"},
      {{"model.placement=deepnorm", "model.norm=none"},
       "none cannot be combined with placement deepnorm (the placement is nothing without a norm); write one of "
       "layernorm, rmsnorm, center, batchnorm, dyt"},
      {{"model.residual=rezero", "placement=deepnorm"},
       "rezero cannot be combined with placement deepnorm (the placement defines its own sum); write add"},
      {{"model.qk_norm=true", "placement=hybrid_norm"}, "hybrid_norm already normalizes q, k and v; write false"},
      {{"model.final_norm=true", "norm=none"},
       "true, but model.norm is none; write \"auto\" or false, or choose a norm"},
      {{"model.embedding_norm=true", "norm=none"},
       "true, but model.norm is none; write \"auto\" or false, or choose a norm"},
      {{"data.files=[]", "task=text"}, "task text has no file to read; write \"files\": [\"my.txt\"], or another task"},
      {{"data.validation_fraction=0", "task=text", "files=CMakeLists.txt", "evaluate_every=5"},
       "0 leaves no text to evaluate on; write for example 0.1, or train.evaluate_every 0"},
      {{"data.context=2", "task=copy"},
       "2 leaves 2 tokens that are not padding, but task copy needs 3 (symbols, a separator and the answer); write a "
       "larger context"},
      {{"data.context=4", "task=modular", "padding_fraction=0.5"},
       "4 leaves 2 tokens that are not padding, but task modular needs 3 (a, b and =); write a larger context"},
      {{"data.vocabulary=2", "task=sort"},
       "2 is too small for task sort (symbols, a separator and the answer); write at least 3"},
      {{"data.successors=65"}, "65 successors cannot differ in a vocabulary of 64; write at most 64"},
      {{"train.batch=1", "norm=batchnorm", "context=1"},
       "batchnorm has no statistics over a single token; write a larger batch or context"},
      {{"train.warmup=200", "decay=cosine"},
       "200 leaves none of the 200 steps for the decay cosine; write fewer than 200, or decay constant"},
      {{"record.spikes.level_window=65"}, "65 is more than the window of 64 values; write at most 64"},
      {{"record.spikes.min_count=65"}, "65 is more than the window of 64 values; write at most 64"},
  };
  for (const Refusal& refusal : refusals) EXPECT_EQ(faults(refusal.overrides), Lines{refusal.fault}) << refusal.fault;
}

TEST(Combinations, ThatCanBeBuiltAreNot) {
  const std::vector<std::vector<std::string>> accepted{
      {"norm=none", "residual=none"},
      {"norm=none", "final_norm=false"},
      {"placement=none"},
      {"task=copy"},
      {"task=copy", "context=3", "vocabulary=3"},
      {"task=modular", "context=3", "vocabulary=3"},
      {"task=majority", "vocabulary=2"},
      {"successors=64"},
      {"warmup=1000"},
      {"warmup=199", "decay=linear"},
      {"norm=batchnorm", "batch=1", "context=2"},
      {"steps=9223372036854775807"},
      {"dtype=bfloat16"},
      {"dtype=float64", "device=auto"},
      {"learning_rate=0"},
  };
  for (const auto& overrides : accepted) EXPECT_EQ(faults(overrides), Lines{}) << overrides[0];
}

TEST(Combinations, AreNotJudgedOnValuesThatAreWrongThemselves) { EXPECT_EQ(faults({"width=0", "heads=3"}).size(), 1u); }

/// Straight to the rules, past what is not available yet.
Lines stack_faults(const Config& config) {
  Origins origins;
  Faults found;
  Examination examination(config, origins, found);
  check_combinations(examination);
  try {
    found.raise();
  } catch (const Error& error) {
    return error.lines();
  }
  return {};
}

TEST(Combinations, OfOtherStacks) {
  Config config;
  config.model.stack = StackKind::resnet;
  config.data.task = Task::cifar10;
  config.model.depth = 9;
  EXPECT_EQ(stack_faults(config), Lines{});
  config.model.depth = 10;
  config.model.residual = Residual::highway;
  config.model.norm = Norm::dyt;
  config.model.tie_embeddings = true;
  config.data.task = Task::markov;
  EXPECT_EQ(stack_faults(config),
            (Lines{"model.residual: highway cannot be combined with placement pre (the stack takes these forms only); "
                   "write one of add, none, scaled, rezero, sqrt2",
                   "model.norm: dyt cannot be combined with placement pre (these norms are defined on images); write "
                   "one of none, layernorm, rmsnorm, batchnorm",
                   "model.depth: 10 cannot be split into the three stages of a resnet; write a multiple of 3",
                   "model.tie_embeddings: true, but stack resnet has no such part; write false",
                   "data.task: markov is no task for stack resnet; write cifar10"}));
  Config other;
  other.model.stack = StackKind::resnet;
  other.model.initialization = Initialization::t_fixup;
  other.model.embedding_norm = true;
  other.model.block_layers = 1;
  other.data.task = Task::cifar10;
  EXPECT_EQ(stack_faults(other),
            (Lines{"model.embedding_norm: true, but stack resnet has no such part; write false",
                   "model.initialization: t_fixup is derived for Transformers, not for stack resnet; write fixup or "
                   "another scheme",
                   "model.block_layers: 1 is for stack mlp; a block of a resnet has two weight layers: write 2"}));
  Config mlp;
  mlp.model.stack = StackKind::mlp;
  mlp.model.placement = Placement::lns;
  mlp.data.task = Task::teacher;
  EXPECT_EQ(stack_faults(mlp), Lines{"model.placement: lns is not defined for stack mlp; write one of pre, post"});
  mlp.model.placement = Placement::post;
  mlp.model.norm = Norm::batchnorm;
  mlp.train.batch = 1;
  EXPECT_EQ(stack_faults(mlp),
            Lines{"train.batch: batchnorm has no statistics over a single sample; write at least 2"});
}

TEST(Combinations, QuantitiesOnDemandNeedAValidationBatch) {
  const std::vector<std::string> text = {"data.task=text", "data.files=[\"README.md\"]", "data.validation_fraction=0"};
  const auto with = [&](const char* quantities) {
    std::vector<std::string> overrides = text;
    overrides.push_back(quantities);
    return faults(overrides);
  };
  EXPECT_EQ(with("quantities=[\"standard\",\"snr\"]"),
            Lines{"0 leaves no text to measure snr on; write for example 0.1"});
  EXPECT_EQ(with("quantities=all"), Lines{});
}

}  // namespace
}  // namespace gradflow
