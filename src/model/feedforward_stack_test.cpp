// The mlp and resnet stacks beyond the golden cases: what they are made of, what a watcher sees, BatchNorm's two modes.

#include "model/feedforward_stack.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "core/philox.h"
#include "model/feedforward_layout.h"
#include "model/stack.h"

namespace gradflow {
namespace {

Config mlp() {
  Config config;
  config.compute.dtype = Dtype::float64;
  config.model.stack = StackKind::mlp;
  config.model.depth = 3;
  config.model.width = 6;
  config.model.activation = Activation::relu;
  config.data.task = Task::clusters;
  config.data.inputs = 5;
  config.data.classes = 4;
  config.train.batch = 10;
  return config;
}

Config resnet() {
  Config config = mlp();
  config.model.stack = StackKind::resnet;
  config.model.width = 4;
  config.model.norm = Norm::batchnorm;
  config.data.task = Task::cifar10;
  config.data.side = 8;
  return config;
}

/// Standard normal inputs, a batch for each number; classes, or the inputs themselves for `identity`.
Batch batch_of(const Config& config, std::uint64_t number = 1) {
  const std::int64_t samples = config.train.batch, side = config.data.side;
  const bool images = config.data.task == Task::cifar10;
  const at::Tensor inputs =
      at::empty({samples, images ? image_channels * side * side : config.data.inputs}, at::kDouble);
  const RandomStream random(number, "inputs");
  for (std::int64_t i = 0; i < inputs.numel(); ++i)
    inputs.data_ptr<double>()[i] = random.normal(static_cast<std::uint64_t>(i));
  return {.inputs = images ? inputs.view({samples, image_channels, side, side}) : inputs,
          .targets = config.data.task == Task::identity ? inputs : at::arange(samples) % config.data.classes,
          .real = {},
          .tokens = samples};
}

/// Everything a watcher is shown, by segment.
class Notes final : public Watcher {
 public:
  struct Note {
    Stream input, output;
    Inside inside;
  };
  void forward_done(std::size_t s, const Stream& input, const Stream& output, const Inside& inside,
                    const Batch&) override {
    notes[s] = {input, output, inside};
  }
  void gradient_arrived(std::size_t, const Stream&) override {}
  std::map<std::size_t, Note> notes;
};

Notes watch(Stack& stack, const Batch& batch) {
  Notes notes;
  Watcher* const watchers[] = {&notes};
  stack.forward({.batch = &batch, .keep = false}, watchers);
  return notes;
}

const Fill& fill_of(const Layout& layout, const std::string& name) {
  for (const SegmentSpec& segment : layout.segments)
    for (const ParameterSpec& parameter : segment.parameters)
      if (parameter.name == name) return parameter.fill;
  throw std::logic_error("no parameter " + name);
}

bool has_parameter(const Layout& layout, const std::string& name) {
  for (const SegmentSpec& segment : layout.segments)
    for (const ParameterSpec& parameter : segment.parameters)
      if (parameter.name == name) return true;
  return false;
}

std::vector<std::string> rows_of(const Layout& layout) {
  std::vector<std::string> rows;
  for (const SegmentSpec& segment : layout.segments) rows.push_back(std::to_string(segment.layer) + segment.sublayer);
  return rows;
}

// ---- layout
// ----------------------------------------------------------------------------------------------------------

/// The sizes that He et al. 2015 give as 0.27 and 0.85 million, exactly.
TEST(ResnetLayout, HasTheSizeOfResnet20AndResnet56) {
  Config config = resnet();
  config.model.placement = Placement::post;
  config.model.width = 16;
  config.data.classes = 10;
  config.model.depth = 9;
  EXPECT_EQ(make_layout(config).parameter_count(), 269722);
  config.model.depth = 27;
  EXPECT_EQ(make_layout(config).parameter_count(), 853018);
}

TEST(FeedforwardLayout, HasARowForStemBlocksAndHead) {
  Config config = mlp();
  EXPECT_EQ(rows_of(make_layout(config)),
            (std::vector<std::string>{"0stem", "1dense", "2dense", "3dense", "4final_norm", "4head"}));
  config.model.placement = Placement::post;
  EXPECT_EQ(rows_of(make_layout(config)), (std::vector<std::string>{"0stem", "1dense", "2dense", "3dense", "4head"}));
  config = resnet();
  config.model.norm = Norm::none;
  EXPECT_EQ(rows_of(make_layout(config)), (std::vector<std::string>{"0stem", "1conv", "2conv", "3conv", "4head"}));
}

TEST(FeedforwardLayout, OneLayerBlocksHaveNoSecondLayerAndNorm) {
  Config config = mlp();
  EXPECT_TRUE(has_parameter(make_layout(config), "block.1.dense.out.weight"));
  EXPECT_TRUE(has_parameter(make_layout(config), "block.1.dense.norm_2.weight"));
  config.model.block_layers = 1;
  EXPECT_FALSE(has_parameter(make_layout(config), "block.1.dense.out.weight"));
  EXPECT_FALSE(has_parameter(make_layout(config), "block.1.dense.norm_2.weight"));
  EXPECT_TRUE(has_parameter(make_layout(config), "block.1.dense.norm_1.weight"));
}

TEST(FeedforwardLayout, BiasesCanBeLeftOut) {
  Config config = mlp();
  config.model.bias = false;
  for (const char* name : {"stem.bias", "block.1.dense.in.bias", "block.1.dense.out.bias", "head.bias"})
    EXPECT_FALSE(has_parameter(make_layout(config), name));
  EXPECT_TRUE(has_parameter(make_layout(resnet()), "head.bias"));
  EXPECT_FALSE(has_parameter(make_layout(resnet()), "stem.bias"));
}

TEST(FeedforwardLayout, FansOfAConvolutionCountItsNinePlaces) {
  Config config = resnet();
  const auto std_of = [&](Initialization scheme, const char* name) {
    config.model.initialization = scheme;
    return fill_of(make_layout(config), name).std;
  };
  // block.2 doubles four channels to eight.
  EXPECT_DOUBLE_EQ(std_of(Initialization::he_normal, "block.2.conv.in.weight"), std::sqrt(2.0 / (9 * 4)));
  EXPECT_DOUBLE_EQ(std_of(Initialization::xavier_normal, "block.2.conv.in.weight"), std::sqrt(2.0 / (9 * 4 + 9 * 8)));
  EXPECT_DOUBLE_EQ(std_of(Initialization::mitchell, "block.2.conv.in.weight"), 1 / std::sqrt(9 * 4.0));
  // One branch a block: √N where a Transformer has √(2N).
  EXPECT_DOUBLE_EQ(std_of(Initialization::gpt2, "block.2.conv.out.weight"), 0.02 / std::sqrt(3.0));
  EXPECT_DOUBLE_EQ(std_of(Initialization::gpt2, "block.2.conv.in.weight"), 0.02);
  EXPECT_DOUBLE_EQ(std_of(Initialization::mitchell, "block.2.conv.out.weight"), 1 / std::sqrt(9 * 8 * 2.0));
  EXPECT_DOUBLE_EQ(std_of(Initialization::ds_init, "block.2.conv.out.weight"), std::sqrt(2.0 / (9 * 16) / 2));
  EXPECT_DOUBLE_EQ(std_of(Initialization::he_normal, "head.weight"), std::sqrt(2.0 / 16));
}

TEST(FeedforwardLayout, FixupClosesBranchesAndHead) {
  Config config = mlp();
  config.model.norm = Norm::none;
  config.model.initialization = Initialization::fixup;
  const Layout two = make_layout(config);
  EXPECT_DOUBLE_EQ(fill_of(two, "stem.weight").std, std::sqrt(2.0 / 5));
  EXPECT_DOUBLE_EQ(fill_of(two, "block.1.dense.in.weight").std, std::sqrt(2.0 / 6) / std::sqrt(3.0));
  EXPECT_EQ(fill_of(two, "block.1.dense.out.weight").std, 0);
  EXPECT_EQ(fill_of(two, "head.weight").std, 0);
  config.model.block_layers = 1;
  EXPECT_EQ(fill_of(make_layout(config), "block.1.dense.in.weight").std, 0);
}

TEST(FeedforwardLayout, BranchInitScaleActsOnTheLastMatrix) {
  Config config = mlp();
  config.model.initialization = Initialization::he_normal;
  config.model.branch_init_scale = 0.01;
  EXPECT_DOUBLE_EQ(fill_of(make_layout(config), "block.1.dense.in.weight").std, std::sqrt(2.0 / 6));
  EXPECT_DOUBLE_EQ(fill_of(make_layout(config), "block.1.dense.out.weight").std, 0.01 * std::sqrt(2.0 / 6));
  config.model.block_layers = 1;
  EXPECT_DOUBLE_EQ(fill_of(make_layout(config), "block.1.dense.in.weight").std, 0.01 * std::sqrt(2.0 / 6));
}

// ---- what a watcher sees
// ---------------------------------------------------------------------------------------------

TEST(FeedforwardStack, PreShowsTheSumAndWhatEntersTheFirstNorm) {
  for (const Config& config : {mlp(), resnet()}) {
    Stack stack(config, at::kCPU);
    const Batch batch = batch_of(config);
    const Notes notes = watch(stack, batch);
    for (std::size_t s = 1; s <= 3; ++s) {
      const Notes::Note& note = notes.notes.at(s);
      EXPECT_TRUE(at::equal(note.inside.norm_input, note.input.x));
      EXPECT_TRUE(at::equal(note.inside.skip + note.inside.branch, note.output.x));
    }
    EXPECT_TRUE(at::equal(notes.notes.at(4).inside.norm_input, notes.notes.at(3).output.x));
    EXPECT_EQ(notes.notes.at(5).inside.logits.sizes(), (at::IntArrayRef{10, 4}));
  }
}

TEST(FeedforwardStack, PostShowsTheSumBeforeTheActivationAndNoNormBehindIt) {
  for (Config config : {mlp(), resnet()}) {
    config.model.placement = Placement::post;
    config.model.residual = Residual::sqrt2;
    Stack stack(config, at::kCPU);
    const Batch batch = batch_of(config);
    const Notes notes = watch(stack, batch);
    const Notes::Note& note = notes.notes.at(1);
    EXPECT_FALSE(note.inside.norm_input.defined());
    EXPECT_TRUE(at::allclose(note.inside.skip, note.input.x / std::sqrt(2.0)));
    EXPECT_TRUE(at::equal(at::relu(note.inside.skip + note.inside.branch), note.output.x));
    // Only the stem of a resnet v1 has a norm of its own.
    EXPECT_EQ(notes.notes.at(0).inside.norm_input.defined(), config.model.stack == StackKind::resnet);
  }
}

TEST(FeedforwardStack, WithoutASkipThereIsNoBranchTerm) {
  Config config = mlp();
  config.model.residual = Residual::none;
  Stack stack(config, at::kCPU);
  const Batch batch = batch_of(config);
  const Notes notes = watch(stack, batch);
  EXPECT_FALSE(notes.notes.at(1).inside.branch.defined());
  EXPECT_FALSE(notes.notes.at(1).inside.skip.defined());
}

TEST(FeedforwardStack, TheShortcutSubsamplesAndAppendsZeros) {
  Config config = resnet();
  Stack stack(config, at::kCPU);
  const Batch batch = batch_of(config);
  const Notes notes = watch(stack, batch);
  const at::Tensor before = notes.notes.at(1).output.x, skip = notes.notes.at(2).inside.skip;
  ASSERT_EQ(before.sizes(), (at::IntArrayRef{10, 4, 8, 8}));
  ASSERT_EQ(skip.sizes(), (at::IntArrayRef{10, 8, 4, 4}));
  EXPECT_EQ(notes.notes.at(3).output.x.sizes(), (at::IntArrayRef{10, 16, 2, 2}));
  EXPECT_EQ(skip.slice(1, 4).abs().max().item<double>(), 0);
  for (std::int64_t i = 0; i < 4; ++i)
    for (std::int64_t j = 0; j < 4; ++j)
      EXPECT_TRUE(at::equal(skip.slice(1, 0, 4).select(2, i).select(2, j), before.select(2, 2 * i).select(2, 2 * j)));
}

TEST(FeedforwardStack, OddSidesAreHalvedUpwards) {
  Config config = resnet();
  config.data.side = 7;
  Stack stack(config, at::kCPU);
  const Batch batch = batch_of(config);
  const Notes notes = watch(stack, batch);
  EXPECT_EQ(notes.notes.at(2).output.x.size(2), 4);
  EXPECT_EQ(notes.notes.at(3).output.x.size(2), 2);
}

TEST(FeedforwardStack, BranchesThatStartAtZeroLeaveTheStreamAlone) {
  for (Config config : {mlp(), resnet()}) {
    config.model.branch_init_scale = 0;
    config.model.depth = 3;
    Stack stack(config, at::kCPU);
    const Batch batch = batch_of(config);
    const Notes notes = watch(stack, batch);
    EXPECT_TRUE(at::equal(notes.notes.at(1).input.x, notes.notes.at(1).output.x));
  }
}

// ---- formulas
// --------------------------------------------------------------------------------------------------------

TEST(FeedforwardStack, OneLayerBlocksByHand) {
  for (const Placement placement : {Placement::pre, Placement::post}) {
    Config config = mlp();
    config.model.block_layers = 1;
    config.model.placement = placement;
    Stack stack(config, at::kCPU);
    const Batch batch = batch_of(config);
    const Notes notes = watch(stack, batch);
    const at::Tensor x = notes.notes.at(1).input.x;
    const auto norm = [](const at::Tensor& z) { return at::layer_norm(z, {6}); };  // gain 1, bias 0 at the start
    const auto in = [&](const at::Tensor& z) {
      return at::linear(z, stack.store().parameter("block.1.dense.in.weight").detach());
    };
    const at::Tensor expected = placement == Placement::pre ? x + in(at::relu(norm(x))) : at::relu(x + norm(in(x)));
    EXPECT_TRUE(at::allclose(notes.notes.at(1).output.x, expected, 1e-12, 1e-12));
  }
}

TEST(FeedforwardStack, IdentityTaskCostsTheMeanSquaredError) {
  Config config = mlp();
  config.data.task = Task::identity;
  Stack stack(config, at::kCPU);
  const Batch batch = batch_of(config);
  Notes notes;
  Watcher* const watchers[] = {&notes};
  const double loss = stack.forward({.batch = &batch, .keep = false}, watchers).item<double>();
  const at::Tensor logits = notes.notes.at(5).inside.logits;
  ASSERT_EQ(logits.sizes(), (at::IntArrayRef{10, 5}));
  EXPECT_DOUBLE_EQ(loss, (logits - batch.inputs).square().sum().item<double>() / 50);
}

TEST(FeedforwardStack, AnMlpTakesImagesAsVectors) {
  Config config = mlp();
  config.data.task = Task::cifar10;
  config.data.side = 4;
  Stack stack(config, at::kCPU);
  EXPECT_EQ(stack.store().parameter("stem.weight").sizes(), (at::IntArrayRef{6, 48}));
  const Batch batch = batch_of(config);
  EXPECT_TRUE(std::isfinite(stack.forward({.batch = &batch, .keep = false}).item<double>()));
}

TEST(FeedforwardStack, Bfloat16FollowsFloat32) {
  for (Config config : {mlp(), resnet()}) {
    config.train.batch = 32;
    config.model.activation = Activation::gelu;
    config.compute.dtype = Dtype::float32;
    Stack reference(config, at::kCPU);
    config.compute.dtype = Dtype::bfloat16;
    Stack rounded(config, at::kCPU);
    const Batch batch = batch_of(config);
    const Pass pass{.batch = &batch};
    const double expected = reference.forward(pass).item<double>(), loss = rounded.forward(pass).item<double>();
    EXPECT_NEAR(loss, expected, 0.03 * expected);
    EXPECT_NE(loss, expected);
    reference.backward(pass, 1);
    rounded.backward(pass, 1);
    EXPECT_EQ(rounded.store().gradients().scalar_type(), at::kFloat);
    EXPECT_NEAR((rounded.store().gradients().norm() / reference.store().gradients().norm()).item<double>(), 1, 0.05);
  }
}

// ---- BatchNorm
// -------------------------------------------------------------------------------------------------------

/// [rows, features] of what enters a BatchNorm.
at::Tensor as_rows(const at::Tensor& x) { return x.dim() == 4 ? x.permute({0, 2, 3, 1}).reshape({-1, x.size(1)}) : x; }

TEST(FeedforwardBatchNorm, TrainingFollowsUnbiasedVarianceWithMomentum) {
  for (Config config : {mlp(), resnet()}) {
    config.model.norm = Norm::batchnorm;
    Stack stack(config, at::kCPU);
    const std::string site = std::string("block.1.") + block_sublayer(config.model.stack) + ".norm_1";
    at::Tensor mean = at::zeros_like(stack.store().buffer(site + ".running_mean")),
               variance = at::ones_like(stack.store().buffer(site + ".running_var"));
    for (const std::int64_t step : {1, 2, 3}) {
      const Batch batch = batch_of(config, static_cast<std::uint64_t>(step));
      Notes notes;
      Watcher* const watchers[] = {&notes};
      stack.forward({.batch = &batch, .step = step, .keep = false}, watchers);
      const at::Tensor rows = as_rows(notes.notes.at(1).input.x);
      mean = 0.9 * mean + 0.1 * rows.mean(0);
      variance = 0.9 * variance + 0.1 * rows.var(0, /*unbiased=*/true);
      EXPECT_TRUE(at::allclose(stack.store().buffer(site + ".running_mean"), mean, 1e-12, 1e-12));
      EXPECT_TRUE(at::allclose(stack.store().buffer(site + ".running_var"), variance, 1e-12, 1e-12));
    }
  }
}

TEST(FeedforwardBatchNorm, EvaluationUsesRunningStatisticsAndLeavesThem) {
  for (Config config : {mlp(), resnet()}) {
    config.model.norm = Norm::batchnorm;
    config.model.activation = Activation::identity;
    config.model.depth = 3;
    Stack stack(config, at::kCPU);
    for (const std::int64_t step : {1, 2, 3}) {
      const Batch batch = batch_of(config, static_cast<std::uint64_t>(step));
      stack.forward({.batch = &batch, .step = step, .keep = false});
    }
    const at::Tensor mean = stack.store().buffer("final_norm.running_mean").clone(),
                     variance = stack.store().buffer("final_norm.running_var").clone();
    const Batch batch = batch_of(config, 9);
    Notes notes;
    Watcher* const watchers[] = {&notes};
    const Pass evaluation{.batch = &batch, .training = false, .keep = false};
    const double loss = stack.forward(evaluation, watchers).item<double>();
    const Notes::Note& note = notes.notes.at(4);
    EXPECT_TRUE(at::allclose(as_rows(note.output.x), (as_rows(note.input.x) - mean) * at::rsqrt(variance + 1e-5), 1e-12,
                             1e-12));
    EXPECT_TRUE(at::equal(stack.store().buffer("final_norm.running_mean"), mean));
    EXPECT_TRUE(at::equal(stack.store().buffer("final_norm.running_var"), variance));
    // The same batch with its own statistics costs something else.
    EXPECT_NE(stack.forward({.batch = &batch, .keep = false, .update_statistics = false}).item<double>(), loss);
  }
}

TEST(FeedforwardBatchNorm, EvaluationOfOneSampleDoesNotDependOnTheOthers) {
  Config config = resnet();
  Stack stack(config, at::kCPU);
  const Batch batch = batch_of(config);
  const auto logits = [&](const Batch& of, bool training) {
    Notes notes;
    Watcher* const watchers[] = {&notes};
    stack.forward({.batch = &of, .training = training, .keep = false, .update_statistics = false}, watchers);
    return notes.notes.at(5).inside.logits;
  };
  Batch half = batch;
  half.inputs = batch.inputs.narrow(0, 0, 5);
  half.targets = batch.targets.narrow(0, 0, 5);
  EXPECT_TRUE(at::allclose(logits(batch, false).narrow(0, 0, 5), logits(half, false), 1e-12, 1e-12));
  EXPECT_FALSE(at::allclose(logits(batch, true).narrow(0, 0, 5), logits(half, true), 1e-3, 1e-3));
}

TEST(FeedforwardBatchNorm, RecomputingUpdatesStatisticsOnceAndGivesTheSameGradient) {
  for (Config config : {mlp(), resnet()}) {
    config.model.norm = Norm::batchnorm;
    config.model.dropout = 0.2;
    const Batch batch = batch_of(config);
    Stack kept(config, at::kCPU), recomputed(config, at::kCPU);
    for (Stack* stack : {&kept, &recomputed}) {
      const Pass pass{.batch = &batch, .recompute = stack == &recomputed};
      stack->forward(pass);
      stack->backward(pass, 1);
    }
    EXPECT_TRUE(at::equal(kept.store().gradients(), recomputed.store().gradients()));
    for (std::size_t b = 0; b < kept.store().buffers().size(); ++b)
      EXPECT_TRUE(at::equal(kept.store().buffers()[b].second, recomputed.store().buffers()[b].second));
  }
}

TEST(FeedforwardBatchNorm, ABatchOfOneLeavesFiniteStatistics) {
  Config config = mlp();
  config.model.norm = Norm::batchnorm;
  config.train.batch = 1;
  Stack stack(config, at::kCPU);
  const Batch batch = batch_of(config);
  stack.forward({.batch = &batch, .keep = false});
  for (const auto& [name, buffer] : stack.store().buffers()) EXPECT_TRUE(buffer.isfinite().all().item<bool>()) << name;
}

}  // namespace
}  // namespace gradflow
