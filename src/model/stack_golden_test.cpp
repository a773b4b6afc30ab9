// Loss, logits, the gradient norm of every parameter and every site of the Transformer golden cases, which an
// independent float64 program made (src/testing/golden/oracle.py).

#include <gtest/gtest.h>

#include <cmath>

#include "data/source.h"
#include "measure/store_sums.h"
#include "measure/stream_statistics.h"
#include "model/stack.h"
#include "testing/golden.h"

namespace gradflow {
namespace {

using testing::golden_case;
using testing::golden_config;
using testing::golden_names;

/// Relative agreement, with an absolute floor for quantities that are zero but for rounding (a key bias has no
/// gradient).
void expect_close(double measured, double expected, double relative, double floor, const std::string& what) {
  EXPECT_LE(std::abs(measured - expected), relative * std::abs(expected) + floor)
      << what << ": measured " << measured << ", expected " << expected;
}

class LogitsWatcher final : public Watcher {
 public:
  explicit LogitsWatcher(StreamMeter& meter) : meter_(meter) {}
  void forward_done(std::size_t s, const Stream& in, const Stream& out, const Inside& inside,
                    const Batch& batch) override {
    meter_.forward_done(s, in, out, inside, batch);
    if (inside.logits.defined()) logits = inside.logits;
  }
  void gradient_arrived(std::size_t s, const Stream& gradient) override { meter_.gradient_arrived(s, gradient); }
  at::Tensor logits;

 private:
  StreamMeter& meter_;
};

void reproduce(const std::string& name, Dtype dtype, bool recompute) {
  SCOPED_TRACE(name);
  const nlohmann::json golden = golden_case(name);
  const Config config = golden_config(golden.at("config"), dtype);
  const double relative = dtype == Dtype::float64 ? 1e-9 : 1e-4;
  const double floor = (dtype == Dtype::float64 ? 1e-15 : 1e-6) * golden.at("grad_norm").get<double>();

  Stack stack(config, at::kCPU);
  const Batch batch = make_source(config)->training_batch(1, 0);
  const Pass pass{.batch = &batch, .recompute = recompute};
  StreamMeter meter(stack.layout(), at::kCPU);
  LogitsWatcher watcher(meter);
  const double loss = stack.forward(pass, &watcher).item<double>();
  stack.backward(pass, 1, &watcher);

  EXPECT_EQ(stack.layout().parameter_count(), golden.at("parameters").get<std::int64_t>());
  expect_close(loss, golden.at("loss"), relative, 0, "loss");
  const at::Tensor first = watcher.logits[0][0].to(at::kDouble);
  const auto logits = golden.at("logits_first").get<std::vector<double>>();
  const double logits_rms = golden.at("logits_rms");
  for (std::size_t v = 0; v < logits.size(); ++v)
    expect_close(first[static_cast<std::int64_t>(v)].item<double>(), logits[v], relative, relative * logits_rms,
                 "logit");
  expect_close(watcher.logits.to(at::kDouble).square().mean().sqrt().item<double>(), logits_rms, relative, 0,
               "logits_rms");

  const GradientSums sums = gradient_sums(stack.store());
  expect_close(sums.norm(), golden.at("grad_norm"), relative, 0, "grad_norm");
  const nlohmann::json& norms = golden.at("parameter_grad_norms");
  ASSERT_EQ(sums.squares.size(), norms.size());
  for (std::size_t e = 0; e < sums.squares.size(); ++e) {
    const std::string& parameter = stack.store().entries()[e].name;
    ASSERT_TRUE(norms.contains(parameter)) << parameter;
    expect_close(std::sqrt(sums.squares[e]), norms.at(parameter), relative, floor, parameter);
  }

  const std::vector<StreamStatistics> statistics = meter.statistics();
  std::size_t s = 0;
  const Residual form = config.model.residual;
  for (const nlohmann::json& site : golden.at("sites")) {
    SCOPED_TRACE(site.at("site"));
    const StreamStatistics& row = statistics.at(s++);
    const double rms = site.at("rms");
    expect_close(row.stream_mean.value(), site.at("mean"), relative, relative * rms, "mean");
    expect_close(row.stream_variance.value(), site.at("variance"), relative, 0, "variance");
    expect_close(row.stream_rms.value(), rms, relative, 0, "rms");
    expect_close(row.stream_grad_norm.value(), site.at("stream_grad_norm"), relative, 0, "stream_grad_norm");
    EXPECT_EQ(row.branch_rms.has_value(), site.contains("branch_rms") && form != Residual::none);
    if (row.branch_rms) {
      expect_close(*row.branch_rms, site.at("branch_rms"), relative, 0, "branch_rms");
      expect_close(row.branch_ratio.value(), site.at("branch_ratio"), relative, 0, "branch_ratio");
    }
  }
}

class GoldenStack : public ::testing::TestWithParam<std::string> {};

TEST_P(GoldenStack, Float64) { reproduce(GetParam(), Dtype::float64, false); }
TEST_P(GoldenStack, Float32) { reproduce(GetParam(), Dtype::float32, false); }
TEST_P(GoldenStack, Recomputed) { reproduce(GetParam(), Dtype::float64, true); }

INSTANTIATE_TEST_SUITE_P(Cases, GoldenStack, ::testing::ValuesIn(golden_names({"mlp-", "resnet-", "train-"}, false)),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace gradflow
