// What the placements and residual forms promise of one another and of their start, and that each one trains.

#include "config/placements.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "analysis/verdict.h"
#include "core/statistics.h"
#include "measure/stream_statistics.h"
#include "model/description.h"
#include "testing/training.h"

namespace gradflow {
namespace {

using testing::tiny_config;
using testing::train;
using testing::TrainedRun;

Config exact_config() {
  Config config = tiny_config();
  config.compute.dtype = Dtype::float64;
  return config;
}

TEST(Equivalence, SqrtTwoInsidePostIsPost) {
  // The norm takes the factor out again; what is left is ε against a variance halved.
  Config post = exact_config();
  post.model.placement = Placement::post;
  post.model.norm_epsilon = 1e-14;
  Config halved = post;
  halved.model.residual = Residual::sqrt2;
  EXPECT_NEAR(train(post).steps[0].loss, train(halved).steps[0].loss, 1e-11);
}

TEST(Equivalence, ScaledStartsAsAdd) {
  Config scaled = exact_config();
  scaled.model.residual = Residual::scaled;
  scaled.model.residual_gate = 1;
  EXPECT_EQ(train(scaled).steps[0].loss, train(exact_config()).steps[0].loss);
}

TEST(Equivalence, ConcatStartsAsAdd) {
  Config concat = exact_config();
  concat.model.residual = Residual::concat;
  EXPECT_NEAR(train(concat).steps[0].loss, train(exact_config()).steps[0].loss, 1e-12);
}

TEST(Equivalence, LnsOfOneBlockIsPre) {
  Config lns = exact_config();
  lns.model.depth = 1;
  Config pre = lns;
  lns.model.placement = Placement::lns;
  EXPECT_EQ(train(lns).losses(), train(pre).losses());
}

TEST(Equivalence, MixLnWithoutPostBlocksIsPre) {
  Config mix = exact_config();
  mix.model.placement = Placement::mix_ln;
  mix.model.mix_post_fraction = 0;
  EXPECT_EQ(train(mix).losses(), train(exact_config()).losses());
}

TEST(Equivalence, MixLnOfPostBlocksIsPostWithAFinalNorm) {
  Config mix = exact_config();
  mix.model.placement = Placement::mix_ln;
  mix.model.mix_post_fraction = 1;
  Config post = exact_config();
  post.model.placement = Placement::post;
  post.model.final_norm = true;
  EXPECT_EQ(train(mix).losses(), train(post).losses());
}

TEST(Equivalence, DeepNormWithAlphaAndBetaOneIsPost) {
  Config deepnorm = exact_config();
  deepnorm.model.placement = Placement::deepnorm;
  deepnorm.model.deepnorm_alpha = 1;
  deepnorm.model.deepnorm_beta = 1;
  Config post = exact_config();
  post.model.placement = Placement::post;
  EXPECT_EQ(train(deepnorm).losses(), train(post).losses());
}

TEST(DeepNorm, AlphaActsOnTheSkip) {
  // With F = 0 the sub-layer is N(x) whatever α; with F ≠ 0 another α gives another output.
  Config config = exact_config();
  config.model.placement = Placement::deepnorm;
  config.model.norm_epsilon = 1e-14;
  Config doubled = config;
  doubled.model.deepnorm_alpha = 2 * std::pow(2.0 * 2, 0.25);
  EXPECT_NE(train(config).steps[0].loss, train(doubled).steps[0].loss);
  config.model.branch_scale = doubled.model.branch_scale = 0;
  EXPECT_NEAR(train(config).steps[0].loss, train(doubled).steps[0].loss, 1e-11);
}

TEST(ReZero, StartsAsTheIdentity) {
  Config config = exact_config();
  config.model.placement = Placement::none;
  config.model.norm = Norm::none;
  config.model.residual = Residual::rezero;
  config.model.residual_gate = 0;
  const TrainedRun shallow = train(config);
  config.model.depth = 6;
  EXPECT_EQ(train(config).steps[0].loss, shallow.steps[0].loss);
  for (std::size_t e = 0; e < shallow.steps[0].gradients.squares.size(); ++e) {
    const std::string& name = shallow.stack->store().entries()[e].name;
    if (!name.starts_with("block.")) continue;
    if (name.ends_with(".residual.scale"))
      EXPECT_GT(shallow.steps[0].gradients.squares[e], 0) << name;
    else
      EXPECT_EQ(shallow.steps[0].gradients.squares[e], 0) << name;
  }
}

TEST(PlainStack, LogsAVanishedGradientAsWhatItIs) {
  // Without norm and skip, N(0, 0.02²), depth 8: block 1 near 4e-25, where a float32 sum of squares reads 0.
  Config config = tiny_config();
  config.model.depth = 8;
  config.model.width = 64;
  config.model.ffn_width = 256;
  config.model.heads = 4;
  config.model.norm = Norm::none;
  config.model.placement = Placement::none;
  config.model.residual = Residual::none;
  config.model.initialization = Initialization::normal;
  config.model.embedding_std = 0.02;
  config.data.vocabulary = 64;
  config.data.context = 32;
  config.train.batch = 8;
  config.train.steps = 1;
  const TrainedRun run = train(config);
  const std::vector<double> rows = per_segment(run.stack->store(), run.steps[0].gradients.squares);
  const double block_one = std::sqrt(rows[1] + rows[2]);
  EXPECT_GT(block_one, 1e-26);
  EXPECT_LT(block_one, 1e-23);
}

// ---- at initialization: width 64, ffn 256 relu, context 32, batch 8, three seeds
// ---------------------------------------

struct Start {
  std::vector<double> norm_input_squares;  ///< E[x²] of what enters each norm on the stream, from the input up
  double gradient_ratio = 0;               ///< block 1 over block N
  double matrix_ratio = 0;                 ///< the same over their matrices alone
};

Start start_of(Placement placement, std::int64_t depth, std::int64_t seed) {
  Config config;
  config.name = "start";
  config.seed = seed;
  config.model.depth = depth;
  config.model.activation = Activation::relu;
  config.model.placement = placement;
  config.data.context = 32;
  config.train.batch = 8;
  config = resolved(config);
  Stack stack(config, at::kCPU);
  const Batch batch = make_source(config)->training_batch(1, 0);
  StreamMeter meter(stack.layout(), at::kCPU);
  Watcher* const watchers[] = {&meter};
  const Pass pass{.batch = &batch};
  stack.forward(pass, watchers);
  stack.backward(pass, 1, watchers);
  Start start;
  for (const StreamStatistics& row : meter.statistics())
    if (row.norm_input_rms) start.norm_input_squares.push_back(*row.norm_input_rms * *row.norm_input_rms);
  const GradientSums sums = gradient_sums(stack.store());
  double first = 0, last = 0, first_matrices = 0, last_matrices = 0;
  for (std::size_t e = 0; e < sums.squares.size(); ++e) {
    const ParameterStore::Entry& entry = stack.store().entries()[e];
    const std::int64_t layer = stack.layout().segments[entry.segment].layer;
    if (layer == 1) first += sums.squares[e];
    if (layer == depth) last += sums.squares[e];
    if (layer == 1 && entry.decays) first_matrices += sums.squares[e];
    if (layer == depth && entry.decays) last_matrices += sums.squares[e];
  }
  start.gradient_ratio = std::sqrt(first / last);
  start.matrix_ratio = std::sqrt(first_matrices / last_matrices);
  return start;
}

/// Slope over depth 4 … 64 of ln E[x²] of what enters the last norm, divided by `scale(depth)`.
double log_log_slope(
    Placement placement, double (*scale)(double) = [](double) { return 1.0; }) {
  std::vector<double> x, y;
  for (const std::int64_t depth : {4, 8, 16, 32, 64})
    for (const std::int64_t seed : {1, 2, 3}) {
      x.push_back(std::log(static_cast<double>(depth)));
      y.push_back(
          std::log(start_of(placement, depth, seed).norm_input_squares.back() / scale(static_cast<double>(depth))));
    }
  return fit_line(x, y).value().slope;
}

TEST(Initialization, StreamGrowsLinearlyWithDepthInPreAndNotInPost) {
  EXPECT_NEAR(log_log_slope(Placement::pre), 1, 0.1);
  EXPECT_NEAR(log_log_slope(Placement::post), 0, 0.05);
}

TEST(Initialization, DeepNormsNormInputIsAlphaSquaredAndFlatOtherwise) {
  // What enters the norm is α·x + F(x) with x of variance 1: between stacks it grows as α² = √(2N), and as nothing
  // else; within a stack it is the same in every block.
  EXPECT_NEAR(log_log_slope(Placement::deepnorm, [](double depth) { return std::sqrt(2 * depth); }), 0, 0.05);
  const std::vector<double> squares = start_of(Placement::deepnorm, 64, 1).norm_input_squares;
  std::vector<double> x, y;
  for (std::size_t l = 2; l < squares.size(); ++l) {  // the first block still sees the embedding
    x.push_back(std::log(static_cast<double>(l)));
    y.push_back(std::log(squares[l]));
  }
  EXPECT_NEAR(fit_line(x, y).value().slope, 0, 0.05);
}

TEST(Initialization, DeepNormKeepsTheGradientEvenOverDepth) {
  for (const std::int64_t depth : {6, 24, 100})
    for (const std::int64_t seed : {1, 2, 3}) {
      SCOPED_TRACE("depth " + std::to_string(depth) + ", seed " + std::to_string(seed));
      const Start start = start_of(Placement::deepnorm, depth, seed);
      EXPECT_GT(start.gradient_ratio, 0.8);
      EXPECT_LT(start.gradient_ratio, 1.25);
      EXPECT_NEAR(start.matrix_ratio, 1, 0.1);
    }
}

class EveryPlacement : public ::testing::TestWithParam<Placement> {};

TEST_P(EveryPlacement, LearnsTheMarkovChainAtDepthFour) {
  Config config;
  config.name = "learns";
  config.model.placement = GetParam();
  config.model.depth = 4;
  config.model.width = 32;
  config.model.activation = Activation::relu;
  config.data.vocabulary = 32;
  config.data.context = 16;
  config.train.steps = 200;
  config.train.learning_rate = 3e-3;
  config.train.warmup = 20;
  config.train.optimizer = OptimizerKind::adam;
  config.train.clip_norm = 1;
  const TrainedRun run = train(resolved(config));
  EXPECT_EQ(verdict_of(run.losses(), run.source->facts().unigram_entropy, run.stopped_at.has_value()), Verdict::learned)
      << "last loss " << run.losses().back() << ", unigram entropy " << *run.source->facts().unigram_entropy;
}

std::vector<Placement> all_placements() {
  std::vector<Placement> placements;
  for (const PlacementRow& row : placement_rows()) placements.push_back(row.placement);
  return placements;
}

INSTANTIATE_TEST_SUITE_P(Placements, EveryPlacement, ::testing::ValuesIn(all_placements()),
                         [](const auto& test) { return std::string(name_of(test.param)); });

class EveryInitialization : public ::testing::TestWithParam<Initialization> {};

TEST_P(EveryInitialization, HasTheStdThatIsPromised) {
  // Over three seeds; a group needs some 10,000 elements for its sample to be within 3 %.
  for (const Placement placement : {Placement::pre, Placement::deepnorm, Placement::sub_ln}) {
    Config config;
    config.name = "start";
    config.model.placement = placement;
    config.model.initialization = GetParam();
    config.model.depth = 2;
    config.data.context = 64;
    config = resolved(config);
    std::map<std::string, std::pair<double, double>> squares;  // Σ (w − offset)² and count
    std::map<std::string, double> promised;
    for (const std::int64_t seed : {1, 2, 3}) {
      config.seed = seed;
      Stack stack(config, at::kCPU);
      for (const SegmentSpec& segment : stack.layout().segments)
        for (const ParameterSpec& parameter : segment.parameters) {
          auto& [sum, count] = squares[parameter.name];
          sum += (stack.store().parameter(parameter.name).detach().to(at::kDouble) - parameter.fill.offset)
                     .square()
                     .sum()
                     .item<double>();
          count += static_cast<double>(parameter.size());
          promised[parameter.name] = initial_std(parameter);
        }
    }
    for (const auto& [name, measured] : squares) {
      if (measured.second < 10000 && promised[name] != 0) continue;
      EXPECT_NEAR(std::sqrt(measured.first / measured.second), promised[name], 0.03 * promised[name])
          << name << ", " << name_of(placement);
    }
  }
}

std::vector<Initialization> random_initializations() {
  std::vector<Initialization> schemes;
  for (const std::string_view name : names_of(Initialization{}))
    if (name != "sinusoid") schemes.push_back(*choice_named<Initialization>(name));
  return schemes;
}

INSTANTIATE_TEST_SUITE_P(Schemes, EveryInitialization, ::testing::ValuesIn(random_initializations()),
                         [](const auto& test) { return std::string(name_of(test.param)); });

}  // namespace
}  // namespace gradflow
