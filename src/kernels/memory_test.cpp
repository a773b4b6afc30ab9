#include "kernels/memory.h"

#include <gtest/gtest.h>

#include "config/backend.h"
#include "config/compatibility.h"
#include "config/resolved.h"
#include "core/mapped_memory.h"
#include "kernels/backend.h"
#include "kernels/workspace.h"
#include "model/parameter_store.h"
#include "model/stack.h"
#include "testing/small_transformer.h"

namespace gradflow {
namespace {

/// Every buffer of the stack is in the estimate, once, and nothing else is.
void expect_exact(Config config, const std::string& what) {
  config = resolved(config);
  ASSERT_TRUE(fused_obstacles(config).empty()) << what;
  const Layout layout = make_layout(config);
  const ParameterStore store(layout, 1, at::kFloat, at::kCPU);
  const auto workspace = std::make_shared<Workspace>(config);
  const auto segments = make_fused_segments_in(workspace, config, store);
  const FusedBuffers buffers = fused_buffers(config, layout);
  EXPECT_EQ(static_cast<double>(workspace->bytes()), buffers.activations + buffers.logits) << what;
}

Config small_config() {
  return testing::small_transformer({.depth = 3, .width = 20, .heads = 5, .vocabulary = 13, .context = 7, .batch = 40});
}

TEST(FusedMemory, EveryBufferOfEveryPlacement) {
  int served = 0;
  for (const Placement placement : allowed_placements(StackKind::transformer))
    for (const bool recompute : {false, true}) {
      Config config = small_config();
      config.model.placement = placement;
      config.compute.recompute = recompute;
      if (!fused_obstacles(resolved(config)).empty()) continue;
      expect_exact(config, std::string(name_of(placement)) + (recompute ? ", recompute" : ""));
      ++served;
    }
  EXPECT_EQ(served, 20);
}

TEST(FusedMemory, EveryBufferOfTheForms) {
  for (const Residual residual : {Residual::none, Residual::scaled, Residual::rezero, Residual::sqrt2}) {
    Config config = small_config();
    config.model.residual = residual;
    expect_exact(config, std::string(name_of(residual)));
  }
  for (const Norm norm : {Norm::none, Norm::rmsnorm}) {
    Config config = small_config();
    config.model.placement = Placement::sandwich;
    config.model.norm = norm;
    expect_exact(config, std::string(name_of(norm)));
  }
  Config config = small_config();
  config.model.width = 128;
  config.model.heads = 4;
  config.model.causal = false;
  config.data.task = Task::majority;
  config.data.context = 300;  // longer than a chunk
  config.train.batch = 2;
  expect_exact(config, "long context");
}

/// So deep that several layers are run again together.
Config deep_config(std::int64_t depth) {
  Config config = testing::small_transformer({.depth = depth, .width = 32, .heads = 2, .context = 8, .batch = 4});
  config.compute.recompute = true;
  return config;
}

TEST(FusedMemory, EveryBufferOfGroupsThatAreRunAgain) {
  // Only in mix_ln do blocks that share a set of buffers need different ones.
  for (const auto& [placement, post_fraction] : {std::pair(Placement::pre, 0.25),
                                                 {Placement::sandwich, 0.25},
                                                 {Placement::mix_ln, 0.01},
                                                 {Placement::mix_ln, 0.25},
                                                 {Placement::mix_ln, 0.99}})
    for (std::int64_t depth = 200; depth < 208; ++depth) {
      Config config = deep_config(depth);
      config.model.placement = placement;
      config.model.mix_post_fraction = post_fraction;
      config = resolved(config);
      EXPECT_GT(recompute_group(config, make_layout(config)), 1);
      expect_exact(config, std::string(name_of(placement)) + ", " + std::to_string(depth));
    }
}

TEST(FusedMemory, TheInputsOfTheGroups) {
  for (const std::int64_t depth : {12, 200, 203, 207}) {
    const Config config = resolved(deep_config(depth));
    Stack stack(config, at::kCPU, make_fused_segments);
    const Batch batch{.inputs = at::zeros({4, 8}, at::kLong), .targets = at::zeros({4, 8}, at::kLong)};
    const std::size_t before = mapped_bytes();
    stack.forward({.batch = &batch, .recompute = true});
    constexpr double page = 4096;  // what they are rounded up to, and begin at
    EXPECT_NEAR(static_cast<double>(mapped_bytes() - before), fused_buffers(config, make_layout(config)).group_inputs,
                2 * page)
        << depth;
  }
}

TEST(FusedMemory, TheEstimateOfAtenIsThatOfTheModel) {
  const Config config = resolved(small_config());
  const Layout layout = make_layout(config);
  EXPECT_EQ(memory_estimate(config, layout, Backend::aten).total(), memory_estimate(config, layout).total());
  EXPECT_NE(memory_estimate(config, layout, Backend::fused).activations, memory_estimate(config, layout).activations);
  EXPECT_EQ(memory_estimate(config, layout, Backend::fused).parameters, memory_estimate(config, layout).parameters);
}

}  // namespace
}  // namespace gradflow
