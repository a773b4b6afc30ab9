#include "train/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "measure/stream_statistics.h"
#include "testing/temporary_folder.h"
#include "testing/training.h"
#include "train/checkpoint.h"

namespace gradflow {
namespace {

using testing::StepCollector;
using testing::tiny_config;
using testing::train;
using testing::TrainedRun;

bool all_finite(Stack& stack) { return stack.store().values().isfinite().all().item<bool>(); }

void poison(Stack& stack, const char* parameter) {
  stack.store().parameter(parameter).detach().flatten()[0] = std::numeric_limits<float>::quiet_NaN();
}

TEST(Trainer, SameSeedGivesTheSameBits) {
  Config config = tiny_config();
  config.model.dropout = 0.2;
  const TrainedRun first = train(config), second = train(config);
  EXPECT_EQ(first.losses(), second.losses());
  EXPECT_TRUE(at::equal(first.stack->store().values(), second.stack->store().values()));
  config.seed = 2;
  EXPECT_NE(train(config).losses(), first.losses());
}

TEST(Trainer, WatchingChangesNothing) {
  const Config config = tiny_config();
  const TrainedRun alone = train(config);
  Stack stack(config, at::kCPU);
  const auto source = make_source(config);
  StreamMeter meter(stack.layout(), at::kCPU);
  StepCollector watching(&meter);
  Trainer(config, stack, *source, at::kCPU, {&watching}).run();
  ASSERT_EQ(watching.steps.size(), alone.steps.size());
  for (std::size_t s = 0; s < alone.steps.size(); ++s) {
    EXPECT_EQ(watching.steps[s].loss, alone.steps[s].loss);
    EXPECT_EQ(watching.steps[s].grad_norm, alone.steps[s].grad_norm);
  }
  EXPECT_TRUE(at::equal(stack.store().values(), alone.stack->store().values()));
}

TEST(Trainer, AccumulationSeesTheSameDataAndGivesTheSameGradient) {
  Config config = tiny_config();
  config.compute.dtype = Dtype::float64;
  config.train.batch = 8;
  const TrainedRun whole = train(config);
  config.train.batch = 2;
  config.train.accumulation = 4;
  const TrainedRun parts = train(config);
  for (std::size_t s = 0; s < whole.steps.size(); ++s) {
    EXPECT_NEAR(parts.steps[s].loss, whole.steps[s].loss, 1e-12);
    EXPECT_NEAR(parts.steps[s].grad_norm, whole.steps[s].grad_norm, 1e-12);
    EXPECT_EQ(parts.steps[s].tokens, whole.steps[s].tokens);
    EXPECT_EQ(parts.steps[s].learning_rate, whole.steps[s].learning_rate);
  }
}

TEST(Trainer, GradNormIsThatBeforeClipping) {
  Config config = tiny_config();
  config.train.clip_norm = 0.1;
  const TrainedRun run = train(config);
  EXPECT_GT(run.steps[0].grad_norm, 0.1);
  EXPECT_DOUBLE_EQ(run.steps[0].clip_factor, 0.1 / run.steps[0].grad_norm);
}

TEST(Trainer, FirstLossIsNearTheLogarithmOfTheVocabularyWithASmallHead) {
  Config config = tiny_config();
  config.data.vocabulary = 64;
  config.model.initialization = Initialization::normal;
  config.model.embedding_std = 0.02;
  EXPECT_NEAR(train(config).steps[0].loss, std::log(64), 0.05);
}

TEST(Trainer, StopsBeforeTheOptimizerWritesANonFiniteGradient) {
  Config config = tiny_config();
  const TrainedRun run = train(config, [](Stack& stack) { poison(stack, "block.2.ffn.in.weight"); });
  ASSERT_EQ(run.steps.size(), 1u);
  EXPECT_TRUE(run.steps[0].last);
  EXPECT_GT(run.steps[0].nonfinite, 0);
  EXPECT_FALSE(run.steps[0].update.has_value());
  ASSERT_TRUE(run.stopped_at.has_value());
  // Everything above the poisoned matrix is nan; the first met from the loss down is the head.
  EXPECT_EQ(run.stopped_at->tensor, "head.weight");
  EXPECT_FALSE(run.stopped_at->activation_finite);
  // One poisoned weight, and nothing else has become non-finite.
  EXPECT_EQ((~run.stack->store().values().isfinite()).sum().item<std::int64_t>(), 1);
}

/// Gives up its work of one step.
class Debtor final : public Observer {
 public:
  explicit Debtor(std::int64_t step) : step_(step) {}
  void step_done(const StepResult& result) override { owes_ = result.step == step_; }
  bool owes() const override { return owes_; }

 private:
  std::int64_t step_;
  bool owes_ = false;
};

TEST(Trainer, ARunThatOwesSomethingIsInterruptedAndSavedUnlessNoStepCouldFollow) {
  const Config config = tiny_config();
  const auto source = make_source(config);
  for (const bool stops : {false, true}) {
    Stack stack(config, at::kCPU);
    const TemporaryFolder folder;
    Debtor debtor(stops ? 1 : 3);
    Checkpoints checkpoints(folder.path(), config, stack.store(), {}, [](std::string_view) {});
    Trainer trainer(config, stack, *source, at::kCPU, {&debtor}, &checkpoints);
    if (stops) stack.store().parameter("head.weight").detach().fill_(3e38);  // finite: it could be saved
    const Ending ending = trainer.run();
    EXPECT_TRUE(ending.interrupted);
    EXPECT_FALSE(ending.stopped_at) << "who resumes must come to the stop by itself";
    EXPECT_EQ(trainer.position().step, stops ? 1 : 3);
    EXPECT_EQ(std::filesystem::exists(folder / "checkpoint/step-3.safetensors"), !stops);
    EXPECT_EQ(std::filesystem::exists(folder / "checkpoint"), !stops);
  }
}

TEST(Trainer, TellsAnOverflowInTheBackwardPassFromOneInTheForwardPass) {
  // Without norms and skips: activations of 1e-30 times weights of 1e38 stay finite on the way up; on the way down the
  // gradient meets the large weights first.
  Config config = tiny_config();
  config.model.norm = Norm::none;
  config.model.residual = Residual::none;
  config.model.placement = Placement::none;
  config.model.activation = Activation::identity;
  const TrainedRun run = train(config, [](Stack& stack) {
    stack.store().parameter("block.1.ffn.out.weight").detach().mul_(1e-30);
    stack.store().parameter("block.2.ffn.in.weight").detach().mul_(1e38);
    stack.store().parameter("block.2.ffn.out.weight").detach().mul_(1e6);
  });
  ASSERT_TRUE(run.stopped_at.has_value());
  EXPECT_TRUE(run.stopped_at->activation_finite);
  EXPECT_EQ(run.stopped_at->kind, NonfiniteFinding::Kind::gradient);
  EXPECT_EQ(run.stopped_at->layer, 2);
  EXPECT_EQ(run.stopped_at->sublayer, "attention");
}

TEST(Trainer, SkippingLeavesWeightsAndOptimizerAlone) {
  Config config = tiny_config();
  config.train.on_nonfinite = OnNonfinite::skip;
  const TrainedRun run = train(config, [](Stack& stack) { poison(stack, "block.1.ffn.in.weight"); });
  ASSERT_EQ(run.steps.size(), 6u);
  EXPECT_FALSE(run.stopped_at.has_value());
  for (const StepResult& step : run.steps) {
    EXPECT_TRUE(step.skipped);
    for (const double square : step.update->update_squares) EXPECT_EQ(square, 0);
  }
  EXPECT_EQ((~run.stack->store().values().isfinite()).sum().item<std::int64_t>(), 1);
  EXPECT_EQ(run.stack->store().first_moment().abs().max().item<double>(), 0);
}

TEST(Trainer, SkippingKeepsRunningStatisticsFinite) {
  Config config = tiny_config();
  config.model.norm = Norm::batchnorm;
  config.train.on_nonfinite = OnNonfinite::skip;
  const TrainedRun run = train(config, [](Stack& stack) { poison(stack, "block.1.ffn.in.weight"); });
  for (const auto& [name, buffer] : run.stack->store().buffers())
    EXPECT_TRUE(buffer.isfinite().all().item<bool>()) << name;
}

TEST(Trainer, ContinuingGoesOnToTheLastStep) {
  Config config = tiny_config();
  config.train.on_nonfinite = OnNonfinite::proceed;
  const TrainedRun run = train(config, [](Stack& stack) { poison(stack, "head.weight"); });
  EXPECT_EQ(run.steps.size(), 6u);
  EXPECT_FALSE(run.stopped_at.has_value());
  EXPECT_FALSE(all_finite(*run.stack));
}

TEST(Trainer, EvaluatesBeforeTheUpdateAndChangesNothing) {
  Config config = tiny_config();
  config.model.norm = Norm::batchnorm;
  config.model.dropout = 0.1;
  const TrainedRun plain = train(config);
  config.train.evaluate_every = 4;
  config.train.evaluate_batches = 3;
  const TrainedRun evaluated = train(config);
  EXPECT_EQ(plain.losses(), evaluated.losses());
  std::vector<std::int64_t> steps;
  for (const StepResult& step : evaluated.steps)
    if (step.eval_loss) steps.push_back(step.step);
  EXPECT_THAT(steps, ::testing::ElementsAre(1, 4, 6));
}

TEST(Trainer, EvaluatesWithTheBranchFactorOfItsStep) {
  // From step T·depth on the factor is 1: the loss of the evaluation is that of the same weights without warm-up.
  Config config = tiny_config();
  config.model.branch_warmup = 2;
  config.train.learning_rate = 0;
  config.train.evaluate_every = 1;
  const TrainedRun warm = train(config);
  config.model.branch_warmup = 0;
  const TrainedRun plain = train(config);
  EXPECT_NE(*warm.steps[0].eval_loss, *plain.steps[0].eval_loss);
  EXPECT_EQ(*warm.steps[3].eval_loss, *plain.steps[3].eval_loss);
}

TEST(Trainer, NamesTheFirstTensorOfTheBackwardPass) {
  // Tied, the head's matrix is the embedding's; within a sub-layer `out` comes before the norm at its entrance.
  Config config = tiny_config();
  config.model.tie_embeddings = true;
  config = resolved(config);
  const TrainedRun tied = train(config, [](Stack& stack) { poison(stack, "embedding.weight"); });
  EXPECT_EQ(tied.stopped_at->tensor, "embedding.weight");
  EXPECT_EQ(tied.stopped_at->sublayer, "head");
  const std::vector<ParameterStore::Entry>& entries = tied.stack->store().entries();
  const auto place = [&](const std::string& name) {
    return std::find_if(entries.begin(), entries.end(), [&](const auto& entry) { return entry.name == name; });
  };
  EXPECT_LT(place("block.1.ffn.norm_in.weight"), place("block.1.ffn.in.weight"));
  EXPECT_LT(place("block.1.ffn.in.weight"), place("block.1.ffn.out.weight"));
  EXPECT_LT(place("block.1.attention.norm_in.weight"), place("block.1.attention.q.weight"));
}

TEST(Trainer, BranchWarmupStartsDeepBlocksLater) {
  // ProRes: at update 1 block l has the factor 1/(T·l).
  Config config = tiny_config();
  config.model.branch_warmup = 1000000000;
  Config without = tiny_config();
  without.model.branch_scale = 0;
  EXPECT_NEAR(train(config).steps[0].loss, train(without).steps[0].loss, 1e-6);
}

TEST(Trainer, BfloatSixteenFollowsFloat32) {
  Config config = tiny_config();
  config.train.steps = 20;
  config.model.norm = Norm::rmsnorm;
  const TrainedRun single = train(config);
  config.compute.dtype = Dtype::bfloat16;
  const TrainedRun brain = train(config);
  for (std::size_t s = 0; s < single.steps.size(); ++s)
    EXPECT_NEAR(brain.steps[s].loss / single.steps[s].loss, 1, 0.02) << "step " << s + 1;
  EXPECT_EQ(brain.stack->store().values().scalar_type(), at::kFloat);
}

}  // namespace
}  // namespace gradflow
