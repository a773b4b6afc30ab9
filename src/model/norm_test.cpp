#include "model/norm.h"

#include <gtest/gtest.h>

#include "model/attention.h"

namespace gradflow {
namespace {

/// A store that holds one norm over `features`, with the gains and biases of the `sinusoid` initialization or 1 and 0.
struct OneNorm {
  OneNorm(Norm norm, std::int64_t features, double epsilon, at::ScalarType dtype = at::kDouble)
      : store(layout(norm, features), 1, dtype, at::kCPU), site(store, "n", norm, epsilon) {}

  static Layout layout(Norm norm, std::int64_t features) {
    SegmentSpec segment{.layer = 1, .sublayer = "ffn"};
    if (norm == Norm::dyt) segment.parameters.push_back({"n.alpha", {}, {.offset = 0.5}});
    segment.parameters.push_back({"n.weight", {features}, {.offset = 1}});
    if (norm != Norm::rmsnorm) segment.parameters.push_back({"n.bias", {features}, {}});
    if (norm == Norm::batchnorm) segment.buffers = {{"n.running_mean", features, 0}, {"n.running_var", features, 1}};
    return {{segment}};
  }

  at::Tensor operator()(const at::Tensor& x, const Pass& pass) { return site(x, pass); }

  at::NoGradGuard no_grad;
  ParameterStore store;
  NormSite site;
};

Batch batch_with(const at::Tensor& real) { return {.real = real}; }

TEST(RmsNorm, HasMeanSquareOneRemovesNoMeanAndHasNoBias) {
  OneNorm norm(Norm::rmsnorm, 4, 1e-12);
  EXPECT_FALSE(norm.store.has("n.bias"));
  const Batch batch;
  const at::Tensor x = at::tensor({3.0, 3.0, 3.0, 3.0}, at::kDouble).view({1, 1, 4});
  const at::Tensor y = norm(x, {.batch = &batch});
  EXPECT_NEAR(y.square().mean().item<double>(), 1, 1e-12);
  EXPECT_NEAR(y.mean().item<double>(), 1, 1e-12);
}

TEST(RmsNorm, EpsilonStandsInsideTheRoot) {
  OneNorm norm(Norm::rmsnorm, 2, 1.0);
  const Batch batch;
  const at::Tensor y = norm(at::tensor({1.0, 1.0}, at::kDouble).view({1, 1, 2}), {.batch = &batch});
  EXPECT_NEAR(y[0][0][0].item<double>(), 1 / std::sqrt(2.0), 1e-12);
}

TEST(LayerNorm, UsesTheBiasedVariance) {
  OneNorm norm(Norm::layernorm, 2, 1e-12);
  const Batch batch;
  const at::Tensor y = norm(at::tensor({0.0, 2.0}, at::kDouble).view({1, 1, 2}), {.batch = &batch});
  EXPECT_NEAR(y[0][0][1].item<double>(), 1, 1e-9);
}

TEST(Center, RemovesTheMeanAndDoesNotScale) {
  OneNorm norm(Norm::center, 2, 1e-5);
  const Batch batch;
  const at::Tensor y = norm(at::tensor({10.0, 20.0}, at::kDouble).view({1, 1, 2}), {.batch = &batch});
  EXPECT_EQ(y[0][0][0].item<double>(), -5);
  EXPECT_EQ(y[0][0][1].item<double>(), 5);
}

TEST(BatchNorm, LeavesPaddingOutOfItsStatistics) {
  OneNorm norm(Norm::batchnorm, 1, 0);
  // Real tokens 2 and 4: mean 3; with the padding it would be 1.5.
  const Batch batch = batch_with(at::tensor({1, 1, 0, 0}).to(at::kBool).view({1, 4}));
  const auto run = [&](double padding) {
    const at::Tensor x = at::tensor({2.0, 4.0, padding, padding}, at::kDouble).view({1, 4, 1});
    return norm(x, {.batch = &batch}).flatten();
  };
  EXPECT_NEAR(run(0)[0].item<double>(), -1, 1e-12);
  EXPECT_NEAR(run(0)[1].item<double>(), 1, 1e-12);
  EXPECT_TRUE(at::equal(run(0).slice(0, 0, 2), run(1000).slice(0, 0, 2)));
}

TEST(BatchNorm, LeavesPaddingOutOfTheStatisticsOfHeadsToo) {
  OneNorm norm(Norm::batchnorm, 1, 0);
  const Batch batch = batch_with(at::tensor({1, 1, 0, 0}).to(at::kBool).view({1, 4}));
  const at::Tensor x = at::tensor({2.0, 4.0, 99.0, 99.0}, at::kDouble).view({1, 1, 4, 1});
  EXPECT_NEAR(norm(x, {.batch = &batch}).flatten()[0].item<double>(), -1, 1e-12);
}

TEST(BatchNorm, EvaluatesWithItsRunningStatistics) {
  OneNorm norm(Norm::batchnorm, 1, 0);
  const Batch batch;
  const at::Tensor x = at::tensor({1.0, 3.0}, at::kDouble).view({1, 2, 1});
  norm(x, {.batch = &batch});
  // Momentum 0.1: mean 0.1·2; unbiased variance 2 of the two values, 0.9·1 + 0.1·2.
  EXPECT_NEAR(norm.store.buffer("n.running_mean")[0].item<double>(), 0.2, 1e-12);
  EXPECT_NEAR(norm.store.buffer("n.running_var")[0].item<double>(), 1.1, 1e-12);
  const at::Tensor y = norm(x, {.batch = &batch, .training = false});
  EXPECT_NEAR(y.flatten()[0].item<double>(), (1 - 0.2) / std::sqrt(1.1), 1e-12);
  EXPECT_NEAR(norm.store.buffer("n.running_mean")[0].item<double>(), 0.2, 1e-12);
}

TEST(NormSite, TakesStatisticsInFloat32UnderBfloat16) {
  // In bfloat16 256 + 1 is 256: the mean of 256 values of 1 + small ones would be lost.
  OneNorm norm(Norm::layernorm, 512, 1e-6, at::kFloat);
  const Batch batch;
  const at::Tensor x = (at::arange(512, at::kFloat) / 64).to(at::kBFloat16).view({1, 1, 512});
  const at::Tensor reference = norm(x.to(at::kFloat), {.batch = &batch});
  EXPECT_TRUE(at::allclose(norm(x, {.batch = &batch}).to(at::kFloat), reference, 8e-3, 8e-3));
}

TEST(Attend, WithPaddingIsAttentionOverTheRealTokens) {
  const at::Tensor q = at::randn({2, 3, 5, 4}, at::kDouble), k = at::randn_like(q), v = at::randn_like(q);
  at::Tensor real = at::ones({2, 5}, at::kBool);
  real.slice(1, 3, 5).fill_(false);
  for (const bool causal : {false, true}) {
    const at::Tensor padded = attend(q, k, v, causal, real).slice(2, 0, 3);
    const auto front = [](const at::Tensor& x) { return x.slice(2, 0, 3).contiguous(); };
    EXPECT_TRUE(at::allclose(padded, attend(front(q), front(k), front(v), causal, {}), 1e-12, 1e-12));
  }
}

TEST(Attend, ARowThatSeesNothingGivesZeroAndAFiniteGradient) {
  const at::AutoGradMode grad(true);
  at::Tensor q = at::randn({1, 1, 3, 2}, at::kDouble).requires_grad_(true);
  const at::Tensor real = at::zeros({1, 3}, at::kBool);
  const at::Tensor y = attend(q, q, q, false, real);
  EXPECT_EQ(y.abs().max().item<double>(), 0);
  y.sum().backward();
  EXPECT_TRUE(q.grad().isfinite().all().item<bool>());
}

}  // namespace
}  // namespace gradflow
