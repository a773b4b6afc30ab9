#include "analysis/probe_profiles.h"

#include <gtest/gtest.h>

#include <cmath>

namespace gradflow {
namespace {

/// A stack in which block l of N has the value f(l, N, seed), given by its two sub-layers.
template <class F>
ProbeCell cell_of(const std::string& quantity, std::int64_t depth, std::int64_t seeds, F f,
                  const std::string& placement = "pre") {
  ProbeCell cell{{placement, "layernorm", "add", "xavier_normal"}, depth, {}};
  for (std::int64_t seed = 1; seed <= seeds; ++seed)
    for (std::int64_t l = 1; l <= depth; ++l)
      for (const char* sublayer : {"attention", "ffn"})
        cell.values.push_back({seed, l, sublayer, quantity, f(l, depth, seed) * (sublayer[0] == 'f' ? 1 : 0.5), {}});
  return cell;
}

double exact(std::int64_t l, std::int64_t, std::int64_t) { return std::exp2(static_cast<double>(l)); }

TEST(ProbeProfiles, TakeTheLastSubLayerOfABlock) {
  const auto profiles = probe_profiles(cell_of("stream_rms", 6, 3, exact));
  ASSERT_EQ(profiles.size(), 1u);
  EXPECT_EQ(profiles[0].quantity, "stream_rms");
  EXPECT_DOUBLE_EQ(profiles[0].first.mean.value(), 2);
  EXPECT_DOUBLE_EQ(profiles[0].last.mean.value(), 64);
  EXPECT_NEAR(profiles[0].profile.rate.mean.value(), std::log(2), 1e-12);
  EXPECT_EQ(name_of(profiles[0].profile.verdict, Flow::activation), "growing");
}

TEST(ProbeProfiles, AddTheSquaresOfParameterNorms) {
  const auto profiles = probe_profiles(cell_of("grad_norm", 4, 3, exact));
  EXPECT_NEAR(profiles[0].first.mean.value(), 2 * std::sqrt(1.25), 1e-12);
  // Away from the output the gradient halves with each block.
  EXPECT_NEAR(profiles[0].profile.rate.mean.value(), -std::log(2), 1e-12);
  EXPECT_EQ(flow_of("stream_grad_norm"), Flow::gradient);
  EXPECT_EQ(flow_of("branch_cosine"), Flow::activation);
}

TEST(ProbeProfiles, HaveEachBlockOverSeedsBesideItsPrediction) {
  ProbeCell cell = cell_of("stream_rms", 4, 3, [](std::int64_t l, auto, std::int64_t seed) {
    return static_cast<double>(l) + 0.1 * static_cast<double>(seed);
  });
  for (ProbeValue& value : cell.values)  // 2^l to 3^l after the feed-forward, which is the block's; 0 elsewhere
    value.predicted = value.sublayer == "ffn" ? Band{std::pow(2, *value.layer), std::pow(3, *value.layer)} : Band{0, 0};
  ProbeProfile profile = probe_profiles(cell).at(0);
  ASSERT_EQ(profile.blocks.size(), 4u);
  EXPECT_NEAR(profile.blocks[2].mean.value(), 3.2, 1e-12);
  EXPECT_NEAR(profile.blocks[2].interval->high, 3.2 + 0.1 * 4.302652729911275 / std::sqrt(3), 1e-9);
  EXPECT_DOUBLE_EQ(profile.predictions[3]->low, 16);
  EXPECT_DOUBLE_EQ(profile.predictions[3]->high, 81);
  EXPECT_NEAR(profile.predicted_rate->low, std::log(2), 1e-12);
  EXPECT_NEAR(profile.predicted_rate->high, std::log(3), 1e-12);
  for (ProbeValue& value : cell.values)
    if (value.layer == 2) value.predicted.reset();
  profile = probe_profiles(cell).at(0);
  EXPECT_FALSE(profile.predictions[1]);
  EXPECT_FALSE(profile.predicted_rate) << "a line through the other blocks would be another prediction";
}

TEST(ProbeProfiles, LeaveOutWhatABlockLacks) {
  ProbeCell cell = cell_of("stream_rms", 3, 2, exact);
  cell.values.push_back({1, 0, "embedding", "stream_rms", 1, {}});
  cell.values.push_back({1, 1, "attention", "attention_entropy", 0.9, {}});
  cell.values.push_back({1, std::nullopt, "", "jacobian_sigma_max", 2, {}});
  const auto profiles = probe_profiles(cell);
  ASSERT_EQ(profiles.size(), 1u);
  EXPECT_EQ(profiles[0].quantity, "stream_rms");
}

TEST(ProbeMeans, AreOverSeedsAtEachPlace) {
  ProbeCell cell = cell_of("stream_rms", 1, 3, [](auto, auto, std::int64_t seed) { return static_cast<double>(seed); });
  for (ProbeValue& value : cell.values) value.predicted = Band{1, 1.5 * static_cast<double>(value.seed)};
  const auto means = probe_means(cell);
  ASSERT_EQ(means.size(), 2u);
  EXPECT_EQ(means[1].sublayer, "ffn");
  EXPECT_EQ(means[1].seeds, 3);
  EXPECT_DOUBLE_EQ(means[1].over_seeds.mean.value(), 2);
  EXPECT_NEAR(means[1].over_seeds.interval->high, 2 + 4.302652729911275 / std::sqrt(3), 1e-9);
  EXPECT_DOUBLE_EQ(means[1].predicted->high, 3);
}

TEST(ProbeMeans, AgreeWhereTheBandMeetsTheInterval) {
  ProbeMean mean{1, "ffn", "stream_rms", 3, {2, MeanInterval{2, 1.5, 2.5}}, Band{2.4, 5}};
  EXPECT_TRUE(agrees(mean));
  mean.predicted = Band{2.6, 5};
  EXPECT_FALSE(agrees(mean));
  mean.predicted = Band{0, 1.4};
  EXPECT_FALSE(agrees(mean));
  mean.over_seeds.interval.reset();
  EXPECT_FALSE(agrees(mean));
  mean.predicted = Band{2, 2};
  EXPECT_TRUE(agrees(mean));
  mean.predicted.reset();
  EXPECT_FALSE(agrees(mean));
}

TEST(DepthExponents, AreFittedOverStacksOfEightBlocksAndMore) {
  // q_l = l·N^-½ but for a jump in shallow stacks, which must not count.
  const auto q = [](std::int64_t l, std::int64_t depth, std::int64_t seed) {
    return (depth < 8 ? 100.0 : 1.0) * static_cast<double>(l) * std::pow(depth, -0.5) * static_cast<double>(seed);
  };
  std::vector<ProbeCell> cells;
  for (const char* placement : {"pre", "post"})
    for (const std::int64_t depth : {4, 8, 16, 32}) cells.push_back(cell_of("stream_rms", depth, 3, q, placement));
  const auto exponents = depth_exponents(cells);
  ASSERT_EQ(exponents.size(), 2u);
  EXPECT_EQ(exponents[1].kind.placement, "post");
  EXPECT_EQ(exponents[0].depths, (std::vector<std::int64_t>{8, 16, 32}));
  EXPECT_NEAR(exponents[0].last.mean.value(), 0.5, 1e-12);
  EXPECT_NEAR(exponents[0].ratio.mean.value(), -1, 1e-12);
  EXPECT_TRUE(exponents[0].last.interval.has_value());
  cells.resize(2);
  EXPECT_TRUE(depth_exponents(cells).empty());
}

}  // namespace
}  // namespace gradflow
