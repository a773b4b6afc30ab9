#include "train/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "testing/training.h"

namespace gradflow {
namespace {

/// A stack whose weights are 1 and whose gradients are 2 everywhere.
struct Uniform {
  explicit Uniform(const Config& config) : stack(config, at::kCPU) {
    for (const ParameterStore::Entry& entry : stack.store().entries()) {
      stack.store().values().narrow(0, entry.offset, entry.size).fill_(1);
      stack.store().gradients().narrow(0, entry.offset, entry.size).fill_(2);
    }
  }
  double value(const char* name) { return stack.store().parameter(name).flatten()[0].item<double>(); }
  Stack stack;
};

Config config_with(OptimizerKind kind) {
  Config config = testing::tiny_config();
  config.compute.dtype = Dtype::float64;
  config.train.optimizer = kind;
  return config;
}

TEST(Optimizer, DecayActsOnMatricesAndEmbeddingsOnly) {
  for (const OptimizerKind kind : {OptimizerKind::adamw, OptimizerKind::adam, OptimizerKind::sgd}) {
    Config config = config_with(kind);
    Uniform plain(config);
    Optimizer(config.train, plain.stack.store()).apply(0.01, 1);
    config.train.weight_decay = 0.5;
    Uniform decayed(config);
    Optimizer(config.train, decayed.stack.store()).apply(0.01, 1);
    for (const ParameterStore::Entry& entry : decayed.stack.store().entries()) {
      const bool differs = plain.value(entry.name.c_str()) != decayed.value(entry.name.c_str());
      // The first step of Adam has length lr whatever is added to the gradient.
      if (kind == OptimizerKind::adam)
        EXPECT_NEAR(decayed.value(entry.name.c_str()), 0.99, 1e-9) << entry.name;
      else
        EXPECT_EQ(differs, entry.shape.size() >= 2) << entry.name;
    }
  }
}

TEST(Optimizer, AdamwDecaysByTheLearningRateTimesTheDecay) {
  Config config = config_with(OptimizerKind::adamw);
  config.train.weight_decay = 0.5;
  Uniform uniform(config);
  Optimizer(config.train, uniform.stack.store()).apply(0.01, 1);
  EXPECT_NEAR(uniform.value("head.weight"), 1 * (1 - 0.01 * 0.5) - 0.01, 1e-9);
}

TEST(Optimizer, SgdAddsTheDecayAndRemembersItsMomentum) {
  Config config = config_with(OptimizerKind::sgd);
  config.train.momentum = 0.5;
  config.train.weight_decay = 0.1;
  Uniform uniform(config);
  Optimizer optimizer(config.train, uniform.stack.store());
  optimizer.apply(0.1, 0.25);  // g = 2·0.25 + 0.1·1 = 0.6
  EXPECT_NEAR(uniform.value("head.weight"), 1 - 0.1 * 0.6, 1e-12);
  optimizer.apply(0.1, 0.25);  // m = 0.5·0.6 + (0.5 + 0.1·0.94) = 0.894
  EXPECT_NEAR(uniform.value("head.weight"), 0.94 - 0.1 * 0.894, 1e-12);
}

TEST(Optimizer, SgdWithoutMomentumWritesNoMoments) {
  for (const Dtype dtype : {Dtype::float32, Dtype::float64}) {
    Config config = config_with(OptimizerKind::sgd);
    config.compute.dtype = dtype;
    Uniform uniform(config);
    // What stands there would show if it were read, and be gone if it were written.
    for (const at::Tensor& moment : {uniform.stack.store().first_moment(), uniform.stack.store().second_moment()})
      moment.fill_(7);
    Optimizer optimizer(config.train, uniform.stack.store());
    for (int update = 0; update < 2; ++update) optimizer.apply(0.125, 0.25);
    EXPECT_EQ(uniform.value("head.weight"), 1 - 2 * 0.125 * 0.25 * 2);
    for (const at::Tensor& moment : {uniform.stack.store().first_moment(), uniform.stack.store().second_moment()})
      EXPECT_TRUE(moment.eq(7).all().item<bool>());
  }
}

TEST(Optimizer, MeasuresTheStepThatItMakes) {
  Config config = config_with(OptimizerKind::adamw);
  Uniform uniform(config);
  const UpdateSums sums = Optimizer(config.train, uniform.stack.store()).apply(0.01, 1);
  for (std::size_t e = 0; e < sums.update_squares.size(); ++e) {
    const double size = static_cast<double>(uniform.stack.store().entries()[e].size);
    EXPECT_NEAR(sums.before_squares[e], size, 1e-9);
    EXPECT_NEAR(sums.after_squares[e], size * 0.99 * 0.99, 1e-6);
    EXPECT_NEAR(sums.update_squares[e], size * 1e-4, 1e-9);
  }
}

TEST(Optimizer, EveryElementIsUpdatedWhateverTheSizeOfItsTensor) {
  // Tensors are worked through in pieces; the last one is rarely full.
  Config config = config_with(OptimizerKind::sgd);
  config.model.width = 26;
  config.model.ffn_width = 53;
  Uniform uniform(config);
  Optimizer(config.train, uniform.stack.store()).apply(0.1, 1);
  for (const ParameterStore::Entry& entry : uniform.stack.store().entries())
    EXPECT_EQ((uniform.stack.store().parameter(entry.name) == 0.8).sum().item<std::int64_t>(), entry.size)
        << entry.name;
}

TEST(Optimizer, AnUpdateThatOverflowsIsTakenBack) {
  Config config = testing::tiny_config();
  config.train.optimizer = OptimizerKind::sgd;
  config.train.momentum = 0.9;
  Uniform uniform(config);
  Optimizer optimizer(config.train, uniform.stack.store());
  const UpdateSums sums = optimizer.apply_if_finite(3e38, 1, 10);
  EXPECT_FALSE(sums.written);
  EXPECT_EQ(optimizer.updates(), 0);
  for (const ParameterStore::Entry& entry : uniform.stack.store().entries())
    EXPECT_EQ(uniform.value(entry.name.c_str()), 1) << entry.name;
  EXPECT_EQ(uniform.stack.store().first_moment().abs().max().item<double>(), 0);
  EXPECT_TRUE(optimizer.apply_if_finite(0.1, 1, 10).written);
}

TEST(Optimizer, ADecayThatOverflowsIsTakenBackToo) {
  for (const OptimizerKind kind : {OptimizerKind::adamw, OptimizerKind::sgd}) {
    Config config = testing::tiny_config();
    config.train.optimizer = kind;
    config.train.weight_decay = 1e38;
    Uniform uniform(config);
    EXPECT_FALSE(Optimizer(config.train, uniform.stack.store()).apply_if_finite(100, 1, 10).written);
    EXPECT_EQ(uniform.value("head.weight"), 1);
  }
}

}  // namespace
}  // namespace gradflow
