#include "analysis/predictions.h"

#include <gtest/gtest.h>

#include <cmath>

#include "config/derived.h"
#include "config/resolved.h"

namespace gradflow {
namespace {

/// Xiong et al. 2020, section 3: one head, a feed-forward as wide as the stream, ReLU, Xavier.
Config setting_of_xiong(Placement placement) {
  Config config;
  config.model.depth = 12;
  config.model.width = 64;
  config.model.heads = 1;
  config.model.ffn_width = 64;
  config.model.activation = Activation::relu;
  config.model.placement = placement;
  config.model.norm_epsilon = 1e-12;
  return resolved(config);
}

/// Every matrix is square: Xavier's variance is 1/64.
double square_xavier(const std::string&) { return 0.125; }

std::vector<ScalePrediction> predicted(const Config& config, double input = 1) {
  return predicted_scales(config, input, square_xavier);
}

void expect_square(const std::optional<Band>& rms, double low, double high) {
  ASSERT_TRUE(rms.has_value());
  EXPECT_NEAR(rms->low * rms->low, low, 1e-9 * high);
  EXPECT_NEAR(rms->high * rms->high, high, 1e-9 * high);
}

TEST(PredictedScales, PreNormGrowsAsLemma2Says) {
  const auto scales = predicted(setting_of_xiong(Placement::pre));
  ASSERT_EQ(scales.size(), 24u);
  for (int l = 1; l <= 12; ++l) {
    const ScalePrediction& ffn = scales[static_cast<std::size_t>(2 * l - 1)];
    EXPECT_EQ(ffn.layer, l);
    EXPECT_EQ(ffn.sublayer, "ffn");
    expect_square(ffn.stream_rms, 1 + 0.5 * l, 1 + 1.5 * l);
    expect_square(ffn.of("branch_rms"), 0.5, 0.5);
    expect_square(scales[static_cast<std::size_t>(2 * l - 2)].norm_input_rms, 1 + 0.5 * (l - 1), 1 + 1.5 * (l - 1));
  }
}

TEST(PredictedScales, PostNormStaysAsLemma2Says) {
  const auto scales = predicted(setting_of_xiong(Placement::post));
  for (std::size_t s = 1; s < scales.size(); s += 2) {
    expect_square(scales[s].norm_input_rms, 1.5, 1.5);
    expect_square(scales[s].stream_rms, 1, 1);
    expect_square(scales[s - 1].norm_input_rms, 1, 2);
  }
}

TEST(PredictedScales, WithoutANormEverySubLayerMultiplies) {
  Config config = setting_of_xiong(Placement::none);
  config.model.norm = Norm::none;
  expect_square(predicted(resolved(config), 0.3).back().stream_rms, 0.3 * std::pow(1.5, 12), 0.3 * std::pow(3, 12));
  config.model.residual = Residual::rezero;
  expect_square(predicted(resolved(config), 0.3).back().stream_rms, 0.3, 0.3);
  config.model.residual = Residual::none;
  const auto plain = predicted(resolved(config));
  expect_square(plain.back().stream_rms, 0, std::pow(0.5, 12));
  EXPECT_EQ(plain.back().branch_rms, std::nullopt);
}

TEST(PredictedScales, ResidualFormsScaleBothTerms) {
  Config config = setting_of_xiong(Placement::pre);
  config.model.residual = Residual::sqrt2;
  expect_square(predicted(resolved(config))[1].stream_rms, (0.5 + 0.5) / 2, (1 + 0.5) / 2);
  config.model.residual = Residual::layerscale;
  expect_square(predicted(resolved(config))[1].stream_rms, 1 + 0.01 * 0.5, 1 + 0.01 * 1.5);
  config.model.residual = Residual::highway;
  EXPECT_EQ(predicted(resolved(config))[1].stream_rms, std::nullopt);
}

TEST(PredictedScales, LayerNormScalingIsAHarmonicSum) {
  double sum = 0;
  for (int l = 1; l <= 12; ++l) sum += 1.0 / l;
  expect_square(predicted(setting_of_xiong(Placement::lns)).back().stream_rms, 1 + 0.5 * sum, 1 + 1.5 * sum);
}

TEST(PredictedScales, ANormBehindTheBranchAddsOne) {
  for (const Placement placement : {Placement::sandwich, Placement::peri, Placement::reordered})
    expect_square(predicted(setting_of_xiong(placement)).back().stream_rms, 25, 25);
}

TEST(PredictedScales, PlacementsWithTheirOwnSum) {
  Config config = setting_of_xiong(Placement::deepnorm);
  const double alpha = deepnorm_alpha(config.model);
  expect_square(predicted(config)[3].norm_input_rms, alpha * alpha + 0.5, alpha * alpha + 0.5);
  expect_square(predicted(setting_of_xiong(Placement::keel))[3].norm_input_rms, 24 * 24 + 0.5, 24 * 24 + 0.5);
  const double omega = admin_omega(setting_of_xiong(Placement::admin).model);
  expect_square(predicted(setting_of_xiong(Placement::admin))[3].norm_input_rms, omega * omega + 0.5,
                omega * omega + 0.5);
  // Sub-LN: what enters the last matrix has size 1.
  expect_square(predicted(setting_of_xiong(Placement::sub_ln)).back().stream_rms, 25, 25);
  const auto dual = predicted(setting_of_xiong(Placement::resi_dual));
  expect_square(dual.back().dual_rms, 1 + 12 * 0.5, 1 + 12 * 1.5);
  EXPECT_EQ(predicted(setting_of_xiong(Placement::pre)).back().dual_rms, std::nullopt);
  // B2T adds what the skip already holds.
  const auto b2t = predicted(setting_of_xiong(Placement::b2t));
  EXPECT_EQ(b2t[1].norm_input_rms, std::nullopt);
  expect_square(b2t[1].stream_rms, 1, 1);
  const auto mixed = predicted(setting_of_xiong(Placement::mix_ln));
  expect_square(mixed[5].stream_rms, 1, 1);  // the third block is the last post
  expect_square(mixed[23].stream_rms, 1 + 4.5, 1 + 13.5);
}

TEST(PredictedScales, ActivationsOtherThanReluNeedANormedInput) {
  Config config = setting_of_xiong(Placement::pre);
  config.model.activation = Activation::gelu;
  const double gelu = predicted(config)[1].branch_rms.value().high;
  EXPECT_NEAR(gelu * gelu, 0.4252, 2e-4);  // E[gelu(g)²]
  config = setting_of_xiong(Placement::post);
  config.model.activation = Activation::gelu;
  EXPECT_EQ(predicted(config)[1].norm_input_rms, std::nullopt);
}

TEST(PredictedScales, EpsilonDropoutAndBranchFactorsCount) {
  Config config = setting_of_xiong(Placement::post);
  config.model.norm_epsilon = 0.5;
  // Behind the attention [1, 2]/([1, 2] + ε), behind the feed-forward 1.5 times that with the same norm.
  expect_square(predicted(config)[1].stream_rms, 1 / 1.5, 1.2 / 1.7);
  config = setting_of_xiong(Placement::pre);
  config.model.branch_scale = 0.5;
  config.model.dropout = 0.2;
  expect_square(predicted(config)[1].branch_rms, 0.5 * 0.25 / 0.8, 0.5 * 0.25 / 0.8);
}

TEST(PredictedScales, OfAnMlpWithHeInitialization) {
  Config config;
  config.model.stack = StackKind::mlp;
  config.model.norm = Norm::none;
  config.model.activation = Activation::relu;
  config.model.depth = 10;
  config.model.width = 32;
  config.data.task = Task::teacher;
  const auto he = [](const std::string&) { return std::sqrt(2.0 / 32); };
  const auto last = [&] { return predicted_scales(resolved(config), 2, he).back().stream_rms; };
  expect_square(last(), 2 * std::pow(2, 10), 2 * std::pow(2, 10));  // (1 + g)^N with g = 1
  config.model.residual = Residual::sqrt2;
  expect_square(last(), 2, 2);
  config.model.residual = Residual::none;
  expect_square(last(), 2, 2);
  config.model.placement = Placement::post;  // act(F): He et al. 2015 keep the square behind the matrix
  expect_square(last(), 2, 2);
  config.model.residual = Residual::add;
  EXPECT_EQ(last(), std::nullopt);
}

TEST(PredictedScales, NothingWhereThereIsNoClosedForm) {
  Config config = setting_of_xiong(Placement::pre);
  config.model.norm = Norm::dyt;
  EXPECT_EQ(predicted(config)[1].stream_rms, std::nullopt);
  config = setting_of_xiong(Placement::pre);
  config.model.initialization = Initialization::sinusoid;
  EXPECT_TRUE(predicted(config).empty());
  config.model.stack = StackKind::resnet;
  EXPECT_TRUE(predicted(config).empty());
}

}  // namespace
}  // namespace gradflow
