// Blocks computed again in the backward pass: the same bits as when everything is kept, and no more kept than a group.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "config/backend.h"
#include "config/compatibility.h"
#include "model/memory_estimate.h"
#include "testing/training.h"

namespace gradflow {
namespace {

using testing::tiny_config;
using testing::train;
using testing::TrainedRun;

void expect_same_bits(Config config, const std::string& what) {
  config.compute.recompute = false;
  const TrainedRun kept = train(config);
  config.compute.recompute = true;
  const TrainedRun again = train(config);
  EXPECT_EQ(kept.losses(), again.losses()) << what;
  EXPECT_TRUE(at::equal(kept.stack->store().values(), again.stack->store().values())) << what;
  const auto &there = kept.stack->store().buffers(), &here = again.stack->store().buffers();
  for (std::size_t b = 0; b < there.size(); ++b) EXPECT_TRUE(at::equal(there[b].second, here[b].second)) << what;
}

TEST(Recompute, ChangesNothing) {
  Config config = tiny_config();
  config.model.dropout = 0.3;  // the second forward must draw the masks of the first
  expect_same_bits(config, "dropout");
}

TEST(Recompute, UpdatesRunningStatisticsOnce) {
  Config config = tiny_config();
  config.model.norm = Norm::batchnorm;
  expect_same_bits(config, "batchnorm");
}

/// So deep that several layers are run again together.
Config deep_config() {
  Config config = testing::small_transformer({.depth = 131, .width = 4, .heads = 2, .context = 3, .batch = 2});
  config.train.steps = 1;
  config.train.accumulation = 2;
  return config;
}

std::int64_t group_of(const Config& config) { return recompute_group(config, make_layout(config)); }

TEST(Recompute, InGroupsChangesNothingInAnyPlacementOnAnyBackend) {
  int fused = 0;
  for (const Placement placement : allowed_placements(StackKind::transformer)) {
    Config config = deep_config();
    config.model.placement = placement;
    config = resolved(config);
    EXPECT_GT(group_of(config), 1) << name_of(placement);
    expect_same_bits(config, std::string(name_of(placement)));
    if (!fused_obstacles(config).empty()) continue;
    config.compute.backend = Backend::fused;
    expect_same_bits(config, std::string(name_of(placement)) + ", fused");
    ++fused;
  }
  EXPECT_EQ(fused, 10);
}

TEST(Recompute, InGroupsChangesNothingWhereverTheLastOneEnds) {
  for (const Backend backend : {Backend::aten, Backend::fused}) {
    const std::int64_t least = deep_config().model.depth;
    for (std::int64_t depth = least; depth < least + group_of(resolved(deep_config())); ++depth) {
      Config config = deep_config();
      config.model.depth = depth;
      config.compute.backend = backend;
      config = resolved(config);
      EXPECT_GT(group_of(config), 1);
      expect_same_bits(config, std::to_string(depth) + ", " + std::string(name_of(backend)));
    }
  }
}

TEST(Recompute, InGroupsChangesNothingInTheOtherStacks) {
  for (const StackKind stack_kind : {StackKind::mlp, StackKind::resnet})
    for (const Norm norm : {Norm::layernorm, Norm::batchnorm}) {
      const std::string what = std::string(name_of(stack_kind)) + ", " + std::string(name_of(norm));
      Config config;
      config.model.stack = stack_kind;
      config.model.norm = norm;
      config.model.depth = 100;
      config.model.width = 4;
      config.model.dropout = 0.1;
      config.data.task = stack_kind == StackKind::mlp ? Task::clusters : Task::cifar10;
      config.data.inputs = 5;
      config.data.side = 5;
      config.train.batch = 3;
      config = resolved(config);
      EXPECT_GT(group_of(config), 1) << what;

      const auto pixels =
          stack_kind == StackKind::mlp ? std::vector<std::int64_t>{3, 5} : std::vector<std::int64_t>{3, 3, 5, 5};
      const Batch batch{.inputs = at::randn(pixels), .targets = at::arange(3)};
      Stack kept(config, at::kCPU);
      config.compute.recompute = true;
      Stack again(config, at::kCPU);
      for (Stack* stack : {&kept, &again}) {
        const Pass pass{.batch = &batch, .recompute = stack == &again};
        stack->forward(pass);
        stack->backward(pass, 1);
      }
      EXPECT_TRUE(at::equal(kept.store().gradients(), again.store().gradients())) << what;
      for (std::size_t b = 0; b < kept.store().buffers().size(); ++b)
        EXPECT_TRUE(at::equal(kept.store().buffers()[b].second, again.store().buffers()[b].second)) << what;
    }
}

/// What the stack asked of its segments.
struct Count {
  std::int64_t forwards = 0, kept = 0, most_kept = 0;
};

class CountedSegment final : public Segment {
 public:
  CountedSegment(std::unique_ptr<Segment> segment, Count& count) : segment_(std::move(segment)), count_(count) {}
  Stream forward(const Stream& input, const Pass& pass, Inside* inside) override {
    ++count_.forwards;
    if (pass.keep) count_.most_kept = std::max(count_.most_kept, ++count_.kept);
    return segment_->forward(input, pass, inside);
  }
  Stream backward(const Stream& output_gradient) override {
    --count_.kept;
    return segment_->backward(output_gradient);
  }

 private:
  std::unique_ptr<Segment> segment_;
  Count& count_;
};

TEST(Recompute, KeepsOneGroupAtATimeAndRunsEveryOtherLayerTwice) {
  Config config = resolved(deep_config());
  config.compute.recompute = true;
  const std::int64_t group = group_of(config);
  ASSERT_GT(group, 1);
  Count count;
  Stack stack(config, at::kCPU, [&](const Config& c, const ParameterStore& store) {
    std::vector<std::unique_ptr<Segment>> counted;
    for (std::unique_ptr<Segment>& segment : make_reference_segments(c, store))
      counted.push_back(std::make_unique<CountedSegment>(std::move(segment), count));
    return counted;
  });
  const Batch batch = make_source(config)->training_batch(1, 0);
  const Pass pass{.batch = &batch, .recompute = true};
  stack.forward(pass);
  stack.backward(pass, 1);
  EXPECT_EQ(count.kept, 0);
  EXPECT_EQ(count.most_kept, 2 * group);  // two segments a layer
  // The backward pass begins in the last group, which is kept at once.
  std::int64_t in_last_group = 0;
  for (const SegmentSpec& segment : stack.layout().segments)
    in_last_group += segment.layer / group == (config.model.depth + 1) / group;
  EXPECT_EQ(count.forwards, 2 * static_cast<std::int64_t>(stack.segment_count()) - in_last_group);
}

TEST(Recompute, GroupsFollowTheRootOfTheDepth) {
  const auto group_at = [](std::int64_t depth) {
    Config config = deep_config();
    config.model.depth = depth;
    return group_of(resolved(config));
  };
  EXPECT_EQ(group_at(2), 1);
  EXPECT_EQ(group_at(20), 1);
  EXPECT_NEAR(static_cast<double>(group_at(4000)) / static_cast<double>(group_at(1000)), 2, 0.25);
}

TEST(Recompute, MemoryGrowsWithTheRootOfTheDepth) {
  const auto activations_at = [](std::int64_t depth, bool recompute) {
    Config config = deep_config();
    config.compute.recompute = recompute;
    config.model.depth = depth;
    config = resolved(config);
    return memory_estimate(config, make_layout(config)).activations;
  };
  EXPECT_NEAR(activations_at(4000, true) / activations_at(1000, true), 2, 0.2);
  EXPECT_NEAR(activations_at(4000, false) / activations_at(1000, false), 4, 0.2);
}

}  // namespace
}  // namespace gradflow
