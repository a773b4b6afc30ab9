// Quantities on demand, against dense Jacobians and Hessians and against formulas written out.

#include "measure/on_demand.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "config/resolved.h"
#include "core/philox.h"
#include "data/source.h"
#include "measure/eigenvalue.h"
#include "testing/small_transformer.h"

namespace gradflow {
namespace {

using Numbers = std::map<std::pair<std::int64_t, std::string>, double>;  // layer (0: the whole stack) and name

Config tiny(std::int64_t depth) {
  Config config = testing::small_transformer({.depth = depth, .width = 4, .vocabulary = 5, .context = 4, .batch = 3});
  config.compute.dtype = Dtype::float64;
  config.model.ffn_width = 6;
  return resolved(config);
}

Batch batch_of(const Config& config) { return make_source(config)->validation_batch(0); }

Numbers measured(const Config& config, const std::set<std::string_view>& wanted,
                 const std::optional<SecondMoment>& moment = std::nullopt, std::int64_t step = 0) {
  Stack stack(config, at::kCPU);
  OnDemandMeter meter(config, batch_of(config), at::kCPU, wanted);
  Numbers numbers;
  for (const StackNumber& number : meter.measure(stack.store(), step, moment))
    EXPECT_TRUE(
        numbers.emplace(std::pair(number.layer.value_or(0), std::string(number.quantity)), number.value).second);
  return numbers;
}

at::Tensor signs(std::uint64_t seed, const std::string& name, std::int64_t count) {
  const RandomStream random(seed, name);
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back((random.bits(static_cast<std::uint64_t>(i)) & 1) == 0 ? -1 : 1);
  return at::tensor(values, at::kDouble);
}

TEST(LargestEigenvalue, IsThatOfTheDenseMatrix) {
  const at::Tensor random = signs(1, "matrix", 400).view({20, 20});
  const at::Tensor symmetric = random + random.t();
  const at::Tensor start = signs(1, "start", 20);
  const auto of = [&](const at::Tensor& matrix) {
    return largest_eigenvalue([&](const at::Tensor& v) { return matrix.mv(v); }, start, 1e-6);
  };
  EXPECT_NEAR(of(symmetric), at::linalg_eigvalsh(symmetric).max().item<double>(), 1e-4);
  // The largest, not the one of largest magnitude.
  const at::Tensor negative = symmetric - 100 * at::eye(20, at::kDouble);
  EXPECT_NEAR(of(negative), at::linalg_eigvalsh(negative).max().item<double>(), 1e-3);
  EXPECT_NEAR(of(3 * at::eye(20, at::kDouble)), 3, 1e-12);
  EXPECT_EQ(of(at::zeros({20, 20}, at::kDouble)), 0);
  EXPECT_TRUE(std::isnan(of(symmetric * std::nan(""))));
}

/// ∂x_N/∂x_0, a finite difference a column.
at::Tensor dense_jacobian(const Config& config, const Batch& batch) {
  const at::NoGradGuard no_grad;
  Stack stack(config, at::kCPU);
  const Pass pass{.batch = &batch, .keep = false, .update_statistics = false};
  const std::size_t last = 1 + 2 * static_cast<std::size_t>(config.model.depth);
  const at::Tensor x = stack.forward_in_graph(0, 1, {}, pass).x;
  const auto behind = [&](const at::Tensor& from) {
    return stack.forward_in_graph(1, last, {from, {}}, pass).x.reshape({-1});
  };
  std::vector<at::Tensor> columns;
  constexpr double h = 1e-5;
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    at::Tensor up = x.clone(), down = x.clone();
    up.view({-1})[i] += h;
    down.view({-1})[i] -= h;
    columns.push_back((behind(up) - behind(down)) / (2 * h));
  }
  return at::stack(columns, 1);
}

TEST(OnDemand, JacobianIsThatOfFiniteDifferences) {
  for (const auto& [placement, causal] :
       {std::pair(Placement::pre, true), std::pair(Placement::post, false), std::pair(Placement::resi_dual, true)}) {
    SCOPED_TRACE(name_of(placement));
    Config config = tiny(2);
    config.model.placement = placement;
    config.model.causal = causal;
    const at::Tensor dense = dense_jacobian(config, batch_of(config));
    const Numbers numbers = measured(config, {"jacobian"});
    const double sigma = at::linalg_svdvals(dense)[0].item<double>();
    EXPECT_NEAR(numbers.at({0, "jacobian_sigma_max"}), sigma, 2e-3 * sigma);
    double squares = 0;
    for (int i = 0; i < 8; ++i)
      squares += dense.mv(signs(1, "jacobian/" + std::to_string(i), dense.size(1))).square().sum().item<double>();
    const double gain = numbers.at({0, "jacobian_rms_gain"});
    EXPECT_NEAR(gain, std::sqrt(squares / 8 / static_cast<double>(dense.size(0))), 1e-7);
    EXPECT_NEAR(gain, dense.norm().item<double>() / std::sqrt(static_cast<double>(dense.size(0))), 0.25 * gain);
  }
}

TEST(OnDemand, JacobianLeavesPaddingOut) {
  Config config = tiny(1);
  config.data.padding_fraction = 0.5;
  const Batch batch = batch_of(config);
  const at::Tensor real = batch.real.unsqueeze(-1).expand({3, 4, 4}).reshape({-1});
  const at::Tensor dense = dense_jacobian(config, batch) * real.unsqueeze(0) * real.unsqueeze(1);
  const double sigma = at::linalg_svdvals(dense)[0].item<double>();
  EXPECT_NEAR(measured(config, {"jacobian"}).at({0, "jacobian_sigma_max"}), sigma, 2e-3 * sigma);
}

/// The Hessian over all parameters, in the order of the store: finite differences of the gradient that training uses.
at::Tensor dense_hessian(const Config& config, const Batch& batch) {
  Stack stack(config, at::kCPU);
  const Pass pass{.batch = &batch, .update_statistics = false};
  const auto gradient = [&] {
    stack.store().zero_gradients();
    stack.forward(pass);
    stack.backward(pass, 1);
    std::vector<at::Tensor> pieces;
    for (const ParameterStore::Entry& entry : stack.store().entries())
      pieces.push_back(stack.store().gradients().narrow(0, entry.offset, entry.size).clone());
    return at::cat(pieces);
  };
  std::vector<at::Tensor> columns;
  constexpr double h = 1e-4;
  for (const ParameterStore::Entry& entry : stack.store().entries())
    for (std::int64_t i = 0; i < entry.size; ++i) {
      const at::Tensor element = stack.store().values()[entry.offset + i];
      element.add_(h);
      const at::Tensor up = gradient();
      element.sub_(2 * h);
      columns.push_back((up - gradient()) / (2 * h));
      element.add_(h);
    }
  const at::Tensor dense = at::stack(columns, 1);
  return (dense + dense.t()) / 2;
}

TEST(OnDemand, HessianIsThatOfFiniteDifferences) {
  const Config config = tiny(1);
  const at::Tensor dense = dense_hessian(config, batch_of(config));
  std::vector<at::Tensor> moments;
  Stack stack(config, at::kCPU);
  double value = 1e-4;
  for (const ParameterStore::Entry& entry : stack.store().entries())
    moments.push_back(at::full({entry.size}, value *= 1.3, at::kDouble));
  const Numbers numbers = measured(config, {"hessian"}, SecondMoment{moments, 3}, 3);

  const double largest = at::linalg_eigvalsh(dense).max().item<double>();
  EXPECT_NEAR(numbers.at({0, "hessian_lambda_max"}), largest, 3e-3 * largest);
  double trace = 0;
  for (int i = 0; i < 16; ++i) {
    const at::Tensor s = signs(1, "hessian/" + std::to_string(i), dense.size(0));
    trace += s.dot(dense.mv(s)).item<double>() / 16;
  }
  EXPECT_NEAR(numbers.at({0, "hessian_trace"}), trace, 1e-4 * std::abs(trace) + 1e-5);

  const double correction = 1 - std::pow(config.train.betas[1], 3);
  const at::Tensor scale = ((at::cat(moments) / correction).sqrt() + config.train.epsilon).rsqrt();
  const at::Tensor preconditioned = scale.unsqueeze(0) * dense * scale.unsqueeze(1);
  const double expected = at::linalg_eigvalsh(preconditioned).max().item<double>();
  EXPECT_NEAR(numbers.at({0, "hessian_preconditioned_lambda_max"}), expected, 3e-3 * expected);
  EXPECT_FALSE(measured(config, {"hessian"}).contains({0, "hessian_preconditioned_lambda_max"}));
}

TEST(OnDemand, NoisePassesTheIdentityAsItIs) {
  Config config = tiny(3);
  config.model.width = 32;
  config.data.context = 16;
  config.model.residual = Residual::rezero;
  const Numbers numbers = measured(resolved(config), {"snr", "snr_raw"});
  EXPECT_EQ(numbers.size(), 6u);
  for (const std::int64_t layer : {1, 2, 3}) {
    EXPECT_NEAR(numbers.at({layer, "snr_raw"}), 40, 0.5);
    EXPECT_EQ(numbers.at({layer, "snr_raw"}), numbers.at({1, "snr_raw"}));
  }
}

TEST(OnDemand, TheRawRatioHidesWhatTheCentredShows) {
  // Attention and norms without a residual: tokens collapse onto one another (Dong et al. 2021).
  Config config = tiny(8);
  config.model.width = 32;
  config.data.context = 16;
  config.model.causal = false;
  config.model.residual = Residual::none;
  const Numbers numbers = measured(resolved(config), {"snr", "snr_raw"});
  EXPECT_LT(numbers.at({8, "snr"}), numbers.at({8, "snr_raw"}) - 20);
}

TEST(OnDemand, NoiseIsMeasuredAsDefined) {
  Config config = tiny(1);
  config.data.padding_fraction = 0.25;
  const Batch batch = batch_of(config);
  const Numbers numbers = measured(config, {"snr", "snr_raw"});

  const at::NoGradGuard no_grad;
  Stack stack(config, at::kCPU);
  const Pass pass{.batch = &batch, .keep = false};
  const at::Tensor x = stack.forward_in_graph(0, 1, {}, pass).x;
  const RandomStream random(1, "snr");
  at::Tensor noise = at::empty_like(x);
  for (std::int64_t i = 0; i < noise.numel(); ++i) noise.view({-1})[i] = random.normal(static_cast<std::uint64_t>(i));
  const at::Tensor real = batch.real;
  noise = noise * 0.01 * x.index({real}).square().mean().sqrt();
  const at::Tensor signal = stack.forward_in_graph(1, 3, {x, {}}, pass).x;
  const at::Tensor difference = stack.forward_in_graph(1, 3, {x + noise, {}}, pass).x - signal;
  double raw_signal = 0, raw_noise = 0, signal_squares = 0, noise_squares = 0;
  for (std::int64_t b = 0; b < 3; ++b) {
    const at::Tensor s = signal[b].narrow(0, 0, 3), n = difference[b].narrow(0, 0, 3);  // the last token is padding
    raw_signal += s.square().sum().item<double>();
    raw_noise += n.square().sum().item<double>();
    signal_squares += (s - s.mean(0)).square().sum().item<double>();
    noise_squares += (n - n.mean(0)).square().sum().item<double>();
  }
  EXPECT_NEAR(numbers.at({1, "snr_raw"}), 10 * std::log10(raw_signal / raw_noise), 1e-6);
  EXPECT_NEAR(numbers.at({1, "snr"}), 10 * std::log10(signal_squares / noise_squares), 1e-6);
}

TEST(OnDemand, WithoutItsLastBlockAStackIsTheShallowerOne) {
  for (const Placement placement : {Placement::pre, Placement::post, Placement::resi_dual, Placement::b2t}) {
    SCOPED_TRACE(name_of(placement));
    Config deep = tiny(2), shallow = tiny(1);
    deep.model.placement = shallow.model.placement = placement;
    const Numbers of_deep = measured(deep, {"lesion"}), of_shallow = measured(shallow, {"lesion"});
    EXPECT_EQ(of_deep.size(), 3u);
    EXPECT_DOUBLE_EQ(of_deep.at({2, "lesion"}), of_shallow.at({0, "lesion"}));
    EXPECT_NE(of_deep.at({1, "lesion"}), of_deep.at({0, "lesion"}));
    Stack stack(deep, at::kCPU);
    const Batch batch = batch_of(deep);
    EXPECT_DOUBLE_EQ(of_deep.at({0, "lesion"}), stack.forward({.batch = &batch, .keep = false}).item<double>());
  }
}

TEST(OnDemand, SimilarityIsKornblithsFormula) {
  const Config config = tiny(2);
  const Numbers numbers = measured(config, {"cka"});
  EXPECT_NEAR(numbers.at({2, "cka"}), 1, 1e-12);
  const Batch batch = batch_of(config);
  const at::NoGradGuard no_grad;
  Stack stack(config, at::kCPU);
  const Pass pass{.batch = &batch, .keep = false};
  const at::Tensor first = stack.forward_in_graph(0, 3, {}, pass).x, second = stack.forward_in_graph(0, 5, {}, pass).x;
  const auto centred = [](const at::Tensor& x) { return x.flatten(0, 1) - x.flatten(0, 1).mean(0); };
  const at::Tensor x = centred(first), y = centred(second);
  const double expected = (y.t().mm(x).norm().square() / (x.t().mm(x).norm() * y.t().mm(y).norm())).item<double>();
  EXPECT_NEAR(numbers.at({1, "cka"}), expected, 1e-12);
}

TEST(OnDemand, OutputChangeIsThatOfTheLogits) {
  Config config = tiny(1);
  config.compute.dtype = Dtype::float32;
  Stack stack(config, at::kCPU);
  OnDemandMeter meter(config, batch_of(config), at::kCPU, {"output_change"});
  EXPECT_EQ(meter.measure(stack.store(), 0).at(0).value, 0);
  const at::Tensor before = stack.store().values().clone();
  const double change = [&] {
    const at::NoGradGuard no_grad;
    stack.store().parameter("head.weight").mul_(1.5);
    return meter.measure(stack.store(), 7).at(0).value;
  }();
  // Half of the logits' own size.
  const Batch batch = batch_of(config);
  struct Logits final : Watcher {
    void forward_done(std::size_t, const Stream&, const Stream&, const Inside& inside, const Batch&) override {
      if (inside.logits.defined()) rms = inside.logits.to(at::kDouble).square().mean().sqrt().item<double>();
    }
    void gradient_arrived(std::size_t, const Stream&) override {}
    double rms = 0;
  } logits;
  Watcher* const watchers[] = {&logits};
  stack.forward({.batch = &batch, .keep = false}, watchers);
  EXPECT_NEAR(change, logits.rms / 3, 1e-5);
  EXPECT_FALSE(stack.store().values().equal(before));
}

TEST(OnDemand, TakesVectorsAndImages) {
  for (const StackKind kind : {StackKind::mlp, StackKind::resnet}) {
    Config config;
    config.model.stack = kind;
    config.model.depth = 3;
    config.model.width = 4;
    config.model.norm = Norm::batchnorm;
    config.data.task = kind == StackKind::mlp ? Task::clusters : Task::cifar10;
    config.data.side = 8;
    config.train.batch = 4;
    const Numbers numbers =
        measured(resolved(config), {"output_change", "jacobian", "hessian", "snr", "snr_raw", "lesion", "cka"});
    EXPECT_GT(numbers.at({0, "jacobian_sigma_max"}), 0);
    EXPECT_GT(numbers.at({0, "hessian_lambda_max"}), 0);
    EXPECT_TRUE(numbers.contains({1, "snr_raw"}));
    EXPECT_FALSE(numbers.contains({1, "snr"}));                          // no tokens, no mean over them
    EXPECT_EQ(numbers.contains({2, "lesion"}), kind == StackKind::mlp);  // the width doubles there
    EXPECT_NEAR(numbers.at({3, "cka"}), 1, 1e-9);
    for (const auto& [name, value] : numbers) EXPECT_TRUE(std::isfinite(value)) << name.second;
  }
}

}  // namespace
}  // namespace gradflow
