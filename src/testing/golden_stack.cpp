#include "testing/golden_stack.h"

#include <gtest/gtest.h>

#include <cmath>

#include "measure/store_sums.h"
#include "measure/stream_statistics.h"
#include "model/stack.h"

namespace gradflow::testing {
namespace {

/// Relative agreement, with an absolute floor for quantities that are zero but for rounding (a key bias has no
/// gradient).
void expect_close(double measured, double expected, double relative, double floor, const std::string& what) {
  EXPECT_LE(std::abs(measured - expected), relative * std::abs(expected) + floor)
      << what << ": measured " << measured << ", expected " << expected;
}

class LogitsWatcher final : public Watcher {
 public:
  void forward_done(std::size_t, const Stream&, const Stream&, const Inside& inside, const Batch&) override {
    if (inside.logits.defined()) logits = inside.logits.to(at::kDouble).flatten(0, -2);
  }
  void gradient_arrived(std::size_t, const Stream&) override {}
  at::Tensor logits;  // [tokens or samples, outputs]
};

double rms(const at::Tensor& x) { return x.square().mean().sqrt().item<double>(); }

void expect_logits(const nlohmann::json& golden, const at::Tensor& logits, double relative) {
  const at::Tensor expected = at::tensor(golden.at("logits_first").get<std::vector<double>>(), at::kDouble);
  ASSERT_EQ(logits.size(1), expected.size(0));
  for (std::int64_t v = 0; v < expected.size(0); ++v)
    expect_close(logits[0][v].item<double>(), expected[v].item<double>(), relative, relative * rms(expected), "logit");
  if (golden.contains("logits_rms")) expect_close(rms(logits), golden.at("logits_rms"), relative, 0, "logits_rms");
}

void expect_parameter_gradients(const nlohmann::json& golden, Stack& stack, double relative, double floor) {
  const GradientSums sums = gradient_sums(stack.store());
  expect_close(sums.norm(), golden.at("grad_norm"), relative, 0, "grad_norm");
  const nlohmann::json& norms = golden.at("parameter_grad_norms");
  ASSERT_EQ(sums.squares.size(), norms.size());
  for (std::size_t e = 0; e < sums.squares.size(); ++e) {
    const std::string& parameter = stack.store().entries()[e].name;
    ASSERT_TRUE(norms.contains(parameter)) << parameter;
    expect_close(std::sqrt(sums.squares[e]), norms.at(parameter), relative, floor, parameter);
  }
}

void expect_sites(const nlohmann::json& sites, const std::vector<StreamStatistics>& statistics, Residual form,
                  double relative) {
  // The cases of the mlp and the resnet say nothing of branches.
  const bool branches_known =
      std::any_of(sites.begin(), sites.end(), [](const nlohmann::json& site) { return site.contains("branch_rms"); });
  std::size_t s = 0;
  for (const nlohmann::json& site : sites) {
    SCOPED_TRACE(site.at("site"));
    const StreamStatistics& row = statistics.at(s++);
    const double site_rms = site.at("rms");
    expect_close(row.stream_mean.value(), site.at("mean"), relative, relative * site_rms, "mean");
    expect_close(row.stream_variance.value(), site.at("variance"), relative, 0, "variance");
    expect_close(row.stream_rms.value(), site_rms, relative, 0, "rms");
    expect_close(row.stream_grad_norm.value(), site.at("stream_grad_norm"), relative, 0, "stream_grad_norm");
    if (!branches_known) continue;
    EXPECT_EQ(row.branch_rms.has_value(), site.contains("branch_rms") && form != Residual::none);
    if (row.branch_rms) {
      expect_close(*row.branch_rms, site.at("branch_rms"), relative, 0, "branch_rms");
      expect_close(row.branch_ratio.value(), site.at("branch_ratio"), relative, 0, "branch_ratio");
    }
  }
}

}  // namespace

void expect_golden(const nlohmann::json& golden, const Config& config, const Batch& batch, bool recompute) {
  const bool exact = config.compute.dtype == Dtype::float64;
  const double relative = exact ? 1e-9 : 1e-4;
  const double floor = (exact ? 1e-15 : 1e-6) * golden.at("grad_norm").get<double>();

  Stack stack(config, at::kCPU);
  const Pass pass{.batch = &batch, .recompute = recompute};
  StreamMeter meter(stack.layout(), at::kCPU);
  LogitsWatcher logits;
  Watcher* const watchers[] = {&meter, &logits};
  const double loss = stack.forward(pass, watchers).item<double>();
  stack.backward(pass, 1, watchers);

  EXPECT_EQ(stack.layout().parameter_count(), golden.at("parameters").get<std::int64_t>());
  expect_close(loss, golden.at("loss"), relative, 0, "loss");
  expect_logits(golden, logits.logits, relative);
  expect_parameter_gradients(golden, stack, relative, floor);
  expect_sites(golden.at("sites"), meter.statistics(), config.model.residual, relative);
}

}  // namespace gradflow::testing
