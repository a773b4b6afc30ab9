#include "config/constants.h"

#include <gtest/gtest.h>

#include <cmath>

namespace gradflow {
namespace {

ModelConfig model_with(Placement placement, std::int64_t depth = 12) {
  ModelConfig model;
  model.placement = placement;
  model.depth = depth;
  return model;
}

std::vector<std::string> names(const ModelConfig& model) {
  std::vector<std::string> out;
  for (const Constant& constant : model_constants(model)) out.push_back(constant.name);
  return out;
}

using Names = std::vector<std::string>;

TEST(Constants, OnlyThoseThatThePlacementUses) {
  EXPECT_EQ(names(model_with(Placement::pre)), Names{"branch_factor"});
  EXPECT_EQ(names(model_with(Placement::deepnorm)), (Names{"deepnorm_alpha", "deepnorm_beta", "branch_factor"}));
  EXPECT_EQ(names(model_with(Placement::keel)), (Names{"keel_alpha", "branch_factor"}));
  EXPECT_EQ(names(model_with(Placement::admin)), (Names{"admin_omega", "branch_factor"}));
  EXPECT_EQ(names(model_with(Placement::sub_ln)), (Names{"branch_gain", "branch_factor"}));
}

TEST(Constants, CountBlocksAndNotSubLayers) {
  const auto constants = model_constants(model_with(Placement::deepnorm, 24));
  EXPECT_NEAR(constants[0].value, 2.632148, 5e-7);
  EXPECT_NEAR(constants[1].value, 0.268642, 5e-7);
  EXPECT_EQ(constants[0].meaning, "(2N)^¼, on the skip");
}

TEST(Constants, SayWhenTheyWereConfigured) {
  ModelConfig model = model_with(Placement::deepnorm);
  model.deepnorm_alpha = 1.5;
  const auto constants = model_constants(model);
  EXPECT_EQ(constants[0].value, 1.5);
  EXPECT_EQ(constants[0].meaning, "configured in the place of (2N)^¼, on the skip");
}

TEST(Constants, GainOfSubLnAndStartOfAdmin) {
  EXPECT_NEAR(model_constants(model_with(Placement::sub_ln))[0].value, std::sqrt(std::log(24.0)), 1e-12);
  EXPECT_NEAR(model_constants(model_with(Placement::admin))[0].value, std::sqrt(25 / std::log(25.0) - 1), 1e-12);
  EXPECT_EQ(model_constants(model_with(Placement::keel))[0].value, 24);
}

TEST(Constants, BranchFactor) {
  ModelConfig model = model_with(Placement::pre, 16);
  model.branch_scale = 3;
  model.branch_scale_exponent = 0.5;
  EXPECT_EQ(model_constants(model)[0].value, 0.75);
  EXPECT_EQ(model_constants(model)[0].meaning, "branch_scale / N^0.5");
}

}  // namespace
}  // namespace gradflow
