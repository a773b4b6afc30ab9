#include "model/memory_estimate.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <memory>

#include "config/compatibility.h"
#include "config/resolved.h"
#include "core/mapped_memory.h"
#include "model/stack.h"

namespace gradflow {
namespace {

/// Bytes that the process has taken from the heap, or as blocks of their own, and not given back.
double allocated() {
  const auto info = mallinfo2();
  return static_cast<double>(info.uordblks + info.hblkhd + mapped_bytes());
}

/// Large tensors and few of them, so that the bookkeeping of autograd disappears beside them.
Config large_config() {
  Config config;
  config.model.depth = 2;
  config.model.width = 64;
  config.data.context = 64;
  config.data.inputs = 2000;
  config.train.batch = 8;
  return config;
}

Batch batch_for(const Config& config) {
  const std::int64_t batch = config.train.batch, context = config.data.context, side = config.data.side;
  switch (config.model.stack) {
    case StackKind::transformer: break;
    case StackKind::mlp:
      return {.inputs = at::randn({batch, config.data.inputs}), .targets = at::zeros({batch}, at::kLong)};
    case StackKind::resnet:
      return {.inputs = at::randn({batch, 3, side, side}), .targets = at::zeros({batch}, at::kLong)};
  }
  Batch out{.inputs = at::zeros({batch, context}, at::kLong), .targets = at::zeros({batch, context}, at::kLong)};
  if (config.data.padding_fraction > 0) {
    out.real = at::ones({batch, context}, at::kBool);
    out.real.slice(1, context / 2, context).fill_(false);
  }
  return out;
}

/// What a forward pass leaves on the heap until its backward.
double kept_by_a_pass(Stack& stack, const Config& config) {
  const double before = allocated();
  const Batch batch = batch_for(config);
  const Pass pass{.batch = &batch, .recompute = config.compute.recompute};
  stack.forward(pass, {});
  const double kept = allocated() - before;
  stack.backward(pass, 1, {});
  return kept;
}

/// Measured on the second pass: the first fills caches. Under recompute on the first pass of a second stack: there the
/// inputs of the groups get a place that they keep.
double measured_kept_bytes(const Config& config) {
  at::set_num_threads(1);  // small operators; on a busy machine threads would only wait for one another
  Stack stack(config, at::kCPU);
  kept_by_a_pass(stack, config);
  if (!config.compute.recompute) return kept_by_a_pass(stack, config);
  Stack second(config, at::kCPU);
  return kept_by_a_pass(second, config);
}

/// The estimate is made of what each operator's derivative reads; no tensor may be missing or counted twice.
void expect_kept(Config config, const std::string& what) {
  config = resolved(config);
  const Layout layout = make_layout(config);
  // Of the head, autograd keeps the log-probabilities.
  EXPECT_NEAR(measured_kept_bytes(config) / (kept_bytes(config, layout) + logit_bytes(config)), 1, 0.04) << what;
}

TEST(MemoryEstimate, KeptTensorsOfEveryPlacement) {
  for (const Placement placement : allowed_placements(StackKind::transformer)) {
    Config config = large_config();
    config.model.placement = placement;
    expect_kept(config, std::string(name_of(placement)));
  }
}

TEST(MemoryEstimate, KeptTensorsOfEveryResidualForm) {
  for (const Residual residual : allowed_residuals(StackKind::transformer, Placement::sandwich)) {
    Config config = large_config();
    config.model.placement = Placement::sandwich;
    config.model.residual = residual;
    expect_kept(config, std::string(name_of(residual)));
  }
}

TEST(MemoryEstimate, KeptTensorsOfEveryNorm) {
  for (const Placement placement : {Placement::sandwich, Placement::sub_ln, Placement::hybrid_norm})
    for (const Norm norm : allowed_norms(StackKind::transformer, placement)) {
      Config config = large_config();
      config.model.placement = placement;
      config.model.norm = norm;
      expect_kept(config, std::string(name_of(placement)) + " " + std::string(name_of(norm)));
    }
}

TEST(MemoryEstimate, KeptTensorsOfEveryActivation) {
  for (const Activation activation : {Activation::gelu, Activation::relu, Activation::tanh, Activation::identity}) {
    Config config = large_config();
    config.model.activation = activation;
    expect_kept(config, std::string(name_of(activation)));
  }
}

TEST(MemoryEstimate, KeptTensorsOfTheSwitches) {
  Config config = large_config();
  config.model.dropout = 0.1;
  expect_kept(config, "dropout");
  config = large_config();
  config.model.qk_norm = true;
  config.model.branch_scale = 0.5;
  expect_kept(config, "qk_norm");
  config = large_config();
  config.data.padding_fraction = 0.5;
  expect_kept(config, "padding");
}

TEST(MemoryEstimate, KeptTensorsUnderRecompute) {
  Config config = large_config();
  config.compute.recompute = true;
  config.model.depth = 6;
  expect_kept(config, "a layer a group");
  // The end in a group of its own and with blocks in its group; the inputs in pages that are not huge, to the byte.
  config.train.batch = 2;
  for (config.model.depth = 100; config.model.depth < 103; ++config.model.depth) {
    EXPECT_GT(recompute_group(resolved(config), make_layout(resolved(config))), 1);
    expect_kept(config, std::to_string(config.model.depth) + " blocks");
  }
}

TEST(MemoryEstimate, KeptTensorsOfOtherDtypes) {
  for (const Dtype dtype : {Dtype::float64, Dtype::bfloat16})
    for (const Norm norm : {Norm::layernorm, Norm::rmsnorm}) {
      Config config = large_config();
      config.compute.dtype = dtype;
      config.model.norm = norm;
      expect_kept(config, std::string(name_of(dtype)) + " " + std::string(name_of(norm)));
    }
}

TEST(MemoryEstimate, KeptTensorsOfMlpAndResNet) {
  for (const StackKind stack : {StackKind::mlp, StackKind::resnet})
    for (const Placement placement : {Placement::pre, Placement::post})
      for (const Norm norm : allowed_norms(stack, placement)) {
        Config config = large_config();
        config.model.stack = stack;
        config.model.placement = placement;
        config.model.norm = norm;
        config.data.task = stack == StackKind::mlp ? Task::clusters : Task::cifar10;
        if (stack == StackKind::resnet) {
          config.model.depth = 3;
          config.model.width = 16;
        }
        if (stack == StackKind::mlp) config.train.batch = 500;
        expect_kept(config, std::string(name_of(stack)) + " " + std::string(name_of(placement)) + " " +
                                std::string(name_of(norm)));
      }
}

TEST(MemoryEstimate, ParametersOfAStack) {
  for (const std::int64_t depth : {2, 100}) {
    Config config = large_config();
    config.model.depth = depth;
    config = resolved(config);
    const double before = allocated();
    const auto stack = std::make_unique<Stack>(config, at::kCPU);
    EXPECT_NEAR(memory_estimate(config, stack->layout()).parameters / (allocated() - before), 1, 0.1) << depth;
  }
}

TEST(MemoryEstimate, AdamNeedsFourTimesTheParameters) {
  const Config config = resolved(large_config());
  const Layout layout = make_layout(config);
  EXPECT_GT(memory_estimate(config, layout).parameters, 16.0 * static_cast<double>(layout.parameter_count()));
}

TEST(MemoryEstimate, SgdNeedsOneBufferLessAndTwoWithoutMomentum) {
  // The others are there, and no run touches them.
  Config config = large_config();
  config.model.depth = 100;
  config = resolved(config);
  const Layout layout = make_layout(config);
  const double adam = memory_estimate(config, layout).parameters;
  const double buffer = 4.0 * static_cast<double>(layout.parameter_count());
  // A checkpoint has a tensor less for every parameter, too.
  double saved = 0;
  for (const SegmentSpec& segment : layout.segments) saved += 0.7e3 * static_cast<double>(segment.parameters.size());
  config.train.optimizer = OptimizerKind::sgd;
  for (const double momentum : {0.9, 0.0}) {
    config.train.momentum = momentum;
    const double fewer = adam - memory_estimate(config, layout).parameters;
    EXPECT_NEAR(fewer, (momentum > 0 ? 1 : 2) * (buffer + saved), 4e-3 * adam);
  }
}

TEST(MemoryEstimate, WarnsWhenTheMachineHasLess) {
  Config config = large_config();
  config.model.depth = 100;
  config = resolved(config);
  const MemoryEstimate estimate{.program = 1e9, .activations = 2e9};
  EXPECT_EQ(memory_fault(config, estimate, 3'000'000'000), std::nullopt);
  EXPECT_EQ(memory_fault(config, estimate, 2'990'000'000),
            "the run needs about 3 GB of memory and 2.99 GB are available; set compute.recompute to true, or lower "
            "train.batch, model.depth or model.width");
  config.compute.recompute = true;
  EXPECT_EQ(
      memory_fault(config, estimate, 100),
      "the run needs about 3 GB of memory and 100 B are available; lower train.batch, model.depth or model.width");
  EXPECT_EQ(memory_fault(config, {.parameters = 2e9}, 100),
            "the run needs about 2 GB of memory and 100 B are available; lower model.depth or model.width");
}

}  // namespace
}  // namespace gradflow
