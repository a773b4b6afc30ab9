#include "testing/golden_stack.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "measure/store_sums.h"
#include "measure/stream_statistics.h"
#include "testing/device.h"

namespace gradflow::testing {
namespace {

class LogitsWatcher final : public Watcher {
 public:
  void forward_done(std::size_t, const Stream&, const Stream&, const Inside& inside, const Batch&) override {
    if (inside.logits.defined()) logits = inside.logits.to(at::kDouble).flatten(0, -2);
  }
  void gradient_arrived(std::size_t, const Stream&) override {}
  at::Tensor logits;  // [tokens or samples, outputs]
};

double rms(const at::Tensor& x) { return x.square().mean().sqrt().item<double>(); }

/// Collects the quantities of one run.
class Collected {
 public:
  void add(const std::string& kind, const std::string& place, double measured, double expected, double floor = 0) {
    quantities.push_back({kind, place, measured, expected, floor});
  }

  void add_logits(const nlohmann::json& golden, const at::Tensor& logits) {
    const auto expected = golden.at("logits_first").get<std::vector<double>>();
    ASSERT_EQ(logits.size(1), static_cast<std::int64_t>(expected.size()));
    double squares = 0;
    for (const double value : expected) squares += value * value;
    const double size = std::sqrt(squares / static_cast<double>(expected.size()));
    for (std::size_t v = 0; v < expected.size(); ++v)
      add("logit", std::to_string(v), logits[0][static_cast<std::int64_t>(v)].item<double>(), expected[v], size);
    if (golden.contains("logits_rms")) add("logits_rms", "", rms(logits), golden.at("logits_rms"));
  }

  void add_parameter_gradients(const nlohmann::json& golden, Stack& stack) {
    const GradientSums sums = gradient_sums(stack.store());
    const double whole = golden.at("grad_norm");
    add("grad_norm", "", sums.norm(), whole);
    const nlohmann::json& norms = golden.at("parameter_grad_norms");
    ASSERT_EQ(sums.squares.size(), norms.size());
    for (std::size_t e = 0; e < sums.squares.size(); ++e) {
      const std::string& parameter = stack.store().entries()[e].name;
      ASSERT_TRUE(norms.contains(parameter)) << parameter;
      // A key bias has no gradient but for rounding.
      add("parameter_grad_norm", parameter, std::sqrt(sums.squares[e]), norms.at(parameter), 0.01 * whole);
    }
  }

  void add_sites(const nlohmann::json& sites, const std::vector<StreamStatistics>& statistics, Residual form) {
    // The cases of the mlp and the resnet say nothing of branches.
    const bool branches_known =
        std::any_of(sites.begin(), sites.end(), [](const nlohmann::json& site) { return site.contains("branch_rms"); });
    std::size_t s = 0;
    for (const nlohmann::json& site : sites) {
      const std::string place = site.at("site");
      const StreamStatistics& row = statistics.at(s++);
      const double site_rms = site.at("rms");
      add("mean", place, row.stream_mean.value(), site.at("mean"), site_rms);
      add("variance", place, row.stream_variance.value(), site.at("variance"));
      add("rms", place, row.stream_rms.value(), site_rms);
      add("stream_grad_norm", place, row.stream_grad_norm.value(), site.at("stream_grad_norm"));
      if (!branches_known) continue;
      EXPECT_EQ(row.branch_rms.has_value(), site.contains("branch_rms") && form != Residual::none) << place;
      if (!row.branch_rms) continue;
      add("branch_rms", place, *row.branch_rms, site.at("branch_rms"));
      add("branch_ratio", place, row.branch_ratio.value(), site.at("branch_ratio"));
    }
  }

  std::vector<GoldenQuantity> quantities;
};

std::vector<GoldenQuantity> quantities_of(Stack& stack, const nlohmann::json& golden, const Config& config,
                                          const Batch& batch, Pass pass) {
  pass.batch = &batch;
  StreamMeter meter(stack.layout(), stack.store().values().device());
  LogitsWatcher logits;
  Watcher* const watchers[] = {&meter, &logits};
  const double loss = stack.forward(pass, watchers).item<double>();
  stack.backward(pass, 1, watchers);

  EXPECT_EQ(stack.layout().parameter_count(), golden.at("parameters").get<std::int64_t>());
  Collected collected;
  collected.add("loss", "", loss, golden.at("loss"));
  collected.add_logits(golden, logits.logits);
  collected.add_parameter_gradients(golden, stack);
  collected.add_sites(golden.at("sites"), meter.statistics(), config.model.residual);
  return collected.quantities;
}

}  // namespace

std::vector<GoldenQuantity> golden_quantities(const nlohmann::json& golden, const Config& config, const Batch& batch,
                                              bool recompute, const SegmentFactory& make_segments, at::Device device) {
  Stack stack(config, device, make_segments);
  return quantities_of(stack, golden, config, moved(batch, device), {.recompute = recompute});
}

std::vector<GoldenQuantity> golden_quantities_rounded(const nlohmann::json& golden, const Config& config,
                                                      const Batch& batch, std::uint32_t draw) {
  Stack stack(config, at::kCPU, make_reference_segments);
  const at::Tensor& weights = stack.store().values();
  std::mt19937 random(draw);
  constexpr float infinity = std::numeric_limits<float>::infinity();
  float* const first = weights.data_ptr<float>();
  for (float* w = first; w != first + weights.numel(); ++w) {
    if (*w == 0) continue;  // the gaps between tensors hold zeros
    switch (random() % 4) {
      case 0: *w = std::nextafter(*w, -infinity); break;
      case 1: *w = std::nextafter(*w, infinity); break;
      default: break;
    }
  }
  return quantities_of(stack, golden, config, batch, {});
}

void expect_golden(const nlohmann::json& golden, const Config& config, const Batch& batch, bool recompute) {
  const double relative = config.compute.dtype == Dtype::float64 ? 1e-9 : 1e-4;
  for (const GoldenQuantity& q :
       golden_quantities(golden, config, batch, recompute, make_reference_segments, test_device()))
    EXPECT_LE(std::abs(q.measured - q.expected), relative * (std::abs(q.expected) + q.floor))
        << q.kind << " " << q.place << ": measured " << q.measured << ", expected " << q.expected;
}

}  // namespace gradflow::testing
