#include "config/derived.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/files.h"

namespace gradflow {
namespace {

ModelConfig deep(std::int64_t depth) {
  ModelConfig model;
  model.depth = depth;
  return model;
}

TEST(Derived, ASharesWholePartIsThatOfTheDecimalFraction) {
  // Each product is a little less than its whole number in binary.
  EXPECT_EQ(share_of(0.29, 100), 29);
  EXPECT_EQ(share_of(0.57, 100), 57);
  EXPECT_EQ(share_of(0.58, 50), 29);
  EXPECT_EQ(share_of(0.7, 90), 63);
  EXPECT_EQ(share_of(0.25, 7), 1);
  EXPECT_EQ(share_of(0.999, 1000), 999);
  EXPECT_EQ(share_of(0, 5), 0);
  EXPECT_EQ(share_of(1, 5), 5);
}

TEST(Derived, DeepNormConstantsAreThoseOfTheTable) {
  struct Row {
    std::int64_t depth;
    double alpha;
    double beta;
  };
  for (const Row& row : {Row{1, 1.189207, 0.594604}, Row{6, 1.861210, 0.379918}, Row{12, 2.213364, 0.319472},
                         Row{24, 2.632148, 0.268642}, Row{100, 3.760603, 0.188030}, Row{1000, 6.687403, 0.105737}}) {
    EXPECT_NEAR(deepnorm_alpha(deep(row.depth)), row.alpha, 5e-7) << row.depth;
    EXPECT_NEAR(deepnorm_beta(deep(row.depth)), row.beta, 5e-7) << row.depth;
  }
}

TEST(Derived, ConfiguredConstantsWin) {
  ModelConfig model = deep(24);
  model.deepnorm_alpha = 1.5;
  model.deepnorm_beta = 0.25;
  model.keel_alpha = 7;
  EXPECT_EQ(deepnorm_alpha(model), 1.5);
  EXPECT_EQ(deepnorm_beta(model), 0.25);
  EXPECT_EQ(keel_alpha(model), 7);
  EXPECT_EQ(keel_alpha(deep(24)), 48);
}

TEST(Derived, AdminStartsAtTheLibraryConstant) {
  EXPECT_NEAR(admin_omega(deep(12)), std::sqrt(25 / std::log(25.0) - 1), 1e-12);
}

TEST(Derived, PlacementGains) {
  ModelConfig model = deep(24);
  EXPECT_EQ(placement_gain(model), 1);
  model.placement = Placement::deepnorm;
  EXPECT_NEAR(placement_gain(model), 0.268642, 5e-7);
  model.placement = Placement::sub_ln;
  EXPECT_NEAR(placement_gain(model), std::sqrt(std::log(48.0)), 1e-12);
}

TEST(Derived, BranchFactors) {
  ModelConfig model = deep(16);
  model.branch_scale = 3;
  EXPECT_EQ(branch_factor(model), 3);
  model.branch_scale_exponent = 0.5;
  EXPECT_DOUBLE_EQ(branch_factor(model), 0.75);
  EXPECT_EQ(branch_warmup_factor(model, 1, 16), 1);
  model.branch_warmup = 10;
  EXPECT_DOUBLE_EQ(branch_warmup_factor(model, 1, 2), 0.05);
  EXPECT_EQ(branch_warmup_factor(model, 20, 2), 1);
  EXPECT_EQ(branch_warmup_factor(model, 1000, 2), 1);
}

TEST(Derived, NormsAfterEmbeddingAndStack) {
  ModelConfig model;
  EXPECT_TRUE(has_final_norm(model));
  EXPECT_FALSE(has_embedding_norm(model));
  model.placement = Placement::post;
  EXPECT_FALSE(has_final_norm(model));
  model.final_norm = true;
  model.embedding_norm = true;
  EXPECT_TRUE(has_final_norm(model));
  EXPECT_TRUE(has_embedding_norm(model));
  model.norm = Norm::none;
  EXPECT_FALSE(has_final_norm(model));
  EXPECT_FALSE(has_embedding_norm(model));
  ModelConfig peri;
  peri.placement = Placement::peri;
  EXPECT_TRUE(has_embedding_norm(peri));
  peri.embedding_norm = false;
  EXPECT_FALSE(has_embedding_norm(peri));
}

TEST(Derived, EmbeddingStdByScheme) {
  ModelConfig model;
  EXPECT_DOUBLE_EQ(embedding_std(model), std::sqrt(0.5));
  model.tie_embeddings = true;
  EXPECT_DOUBLE_EQ(embedding_std(model), 0.125) << "width^-½";
  model.initialization = Initialization::gpt2;
  EXPECT_EQ(embedding_std(model), 0.02);
  model.initialization = Initialization::normal;
  model.init_std = 0.03;
  EXPECT_EQ(embedding_std(model), 0.03);
  model.initialization = Initialization::t_fixup;
  EXPECT_DOUBLE_EQ(embedding_std(model), 0.125 * std::pow(9.0 * 12, -0.25));
  model.embedding_std = 2;
  EXPECT_EQ(embedding_std(model), 2);
}

TEST(Derived, GatesVocabularyAndPadding) {
  EXPECT_EQ(initial_gate(Residual::scaled), 1);
  EXPECT_EQ(initial_gate(Residual::rezero), 0);
  EXPECT_EQ(initial_gate(Residual::layerscale), 0.1);
  for (const Residual form :
       {Residual::add, Residual::none, Residual::sqrt2, Residual::highway, Residual::concat, Residual::gate_literal})
    EXPECT_EQ(initial_gate(form), std::nullopt) << name_of(form);
  DataConfig data;
  EXPECT_EQ(default_vocabulary(data), 64);
  data.task = Task::text;
  EXPECT_EQ(default_vocabulary(data), 256);
  data.tokenizer = Tokenizer::character;
  EXPECT_EQ(default_vocabulary(data), std::nullopt);
  data.context = 10;
  data.padding_fraction = 0.25;
  EXPECT_EQ(padding_tokens(data), 2);
  data.padding_fraction = 0.999999;
  EXPECT_EQ(padding_tokens(data), 9) << "one token is real";
}

TEST(LearningRate, FollowsTheIndependentTrajectories) {
  int compared = 0;
  for (const char* name : {"adamw", "adamw-cosine", "adamw-linear", "adamw-inverse-sqrt", "adamw-noclip-nowarmup",
                           "adamw-accumulate", "sgd", "momentum"}) {
    const auto golden = nlohmann::json::parse(read_file(std::string("src/testing/golden/train-") + name + ".json"));
    const auto& asked = golden.at("config").at("train");
    TrainConfig train;
    train.steps = asked.at("steps");
    train.learning_rate = asked.at("learning_rate");
    train.warmup = asked.at("warmup");
    train.decay = choice_named<Decay>(asked.at("decay").get<std::string>()).value();
    train.final_fraction = asked.at("final_fraction");
    for (const auto& step : golden.at("steps")) {
      const double expected = step.at("learning_rate");
      EXPECT_NEAR(learning_rate(train, step.at("step")), expected, 1e-12 * expected) << name << " " << step.at("step");
      ++compared;
    }
  }
  EXPECT_EQ(compared, 80);
}

TEST(LearningRate, TheFirstUpdateIsNotWasted) {
  TrainConfig train;
  train.warmup = 4;
  EXPECT_DOUBLE_EQ(learning_rate(train, 1), 1e-3 / 4);
  EXPECT_DOUBLE_EQ(learning_rate(train, 4), 1e-3);
  EXPECT_DOUBLE_EQ(learning_rate(train, 200), 1e-3);
}

TEST(LearningRate, DecayEndsAtTheFinalFraction) {
  TrainConfig train;
  train.warmup = 20;
  train.final_fraction = 0.1;
  for (const Decay decay : {Decay::linear, Decay::cosine}) {
    train.decay = decay;
    EXPECT_NEAR(learning_rate(train, 200), 1e-4, 1e-16) << name_of(decay);
    EXPECT_NEAR(learning_rate(train, 110), 5.5e-4, 1e-16) << name_of(decay) << ", half-way";
  }
  train.decay = Decay::inverse_sqrt;
  EXPECT_DOUBLE_EQ(learning_rate(train, 80), 5e-4);
  train.warmup = 0;
  EXPECT_DOUBLE_EQ(learning_rate(train, 4), 5e-4);
}

}  // namespace
}  // namespace gradflow
