// The path of a GPU, on the CPU: every number of a step stays where it was computed until one transfer at its end, and
// no operator on the way reads one.

#include <ATen/record_function.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "measure/readout.h"
#include "testing/temporary_folder.h"
#include "testing/training.h"
#include "train/recorder.h"

namespace gradflow {
namespace {

using testing::StepCollector;
using testing::tiny_config;

/// Names of the operators called while it lives that make the host wait for a device: their result decides what is done
/// next, or how large something is.
class WaitingOperators {
 public:
  WaitingOperators() {
    called().clear();
    handle_ = at::addGlobalCallback(at::RecordFunctionCallback(&note).scopes({at::RecordScope::FUNCTION}));
  }
  ~WaitingOperators() { at::removeCallback(handle_); }
  WaitingOperators(const WaitingOperators&) = delete;
  WaitingOperators& operator=(const WaitingOperators&) = delete;

  static std::set<std::string>& called() {
    static std::set<std::string> names;
    return names;
  }

 private:
  static std::unique_ptr<at::ObserverContext> note(const at::RecordFunction& function) {
    static const std::set<std::string> waiting = {"aten::item",          "aten::_local_scalar_dense",
                                                  "aten::is_nonzero",    "aten::equal",
                                                  "aten::masked_select", "aten::nonzero",
                                                  "aten::_unique2",      "aten::bincount"};
    if (waiting.contains(function.name())) called().insert(function.name());
    return nullptr;
  }

  at::CallbackHandle handle_;
};

struct Recorded {
  std::vector<StepResult> steps;
  std::vector<LayerRow> last_rows;
  at::Tensor values, first_moment, second_moment;
  std::int64_t read_backs = 0;
};

/// A recorded run on the CPU, as a device would run it or not.
Recorded recorded(const Config& config, bool as_device, void (*before)(Stack&) = nullptr) {
  std::optional<CpuAsDevice> guard;
  if (as_device) guard.emplace();
  const auto source = make_source(config);
  Stack stack(config, at::kCPU);
  if (before != nullptr) before(stack);
  const TemporaryFolder folder;
  Recorder recorder(config, stack, at::kCPU, folder.path());
  StepCollector collector;
  Trainer trainer(config, stack, *source, at::kCPU, {&recorder, &collector});
  const std::int64_t reads = read_backs();
  trainer.run();
  Recorded run{std::move(collector.steps),
               recorder.last_rows(),
               stack.store().values().clone(),
               stack.store().first_moment().clone(),
               stack.store().second_moment().clone(),
               read_backs() - reads};
  recorder.finish();
  return run;
}

Config float64_config() {
  Config config = tiny_config();
  config.compute.dtype = Dtype::float64;
  config.train.clip_norm = 0.5;
  config.train.weight_decay = 0.1;
  config.train.accumulation = 2;
  config.train.evaluate_every = 2;
  config.record.layers_every = 1;
  config.record.quantities = {"all"};
  return config;
}

/// The key biases, whose true gradient is zero, are what rounding leaves: they may differ.
void expect_near(double measured, double expected, const char* what) {
  EXPECT_NEAR(measured, expected, 1e-11 * std::abs(expected) + 1e-20) << what;
}

void expect_near(const std::vector<double>& measured, const std::vector<double>& expected, const char* what) {
  ASSERT_EQ(measured.size(), expected.size()) << what;
  for (std::size_t i = 0; i < expected.size(); ++i) expect_near(measured[i], expected[i], what);
}

TEST(DevicePath, GivesTheNumbersOfTheCpu) {
  constexpr auto sgd = OptimizerKind::sgd;
  for (const auto& [optimizer, momentum] :
       {std::pair(OptimizerKind::adamw, 0.0), {OptimizerKind::adam, 0.0}, {sgd, 0.0}, {sgd, 0.8}}) {
    Config config = float64_config();
    config.train.optimizer = optimizer;
    config.train.momentum = momentum;
    const Recorded device = recorded(config, true), cpu = recorded(config, false);
    ASSERT_EQ(device.steps.size(), cpu.steps.size());
    for (std::size_t s = 0; s < cpu.steps.size(); ++s) {
      const StepResult &d = device.steps[s], &c = cpu.steps[s];
      expect_near(d.loss, c.loss, "loss");
      expect_near(d.grad_norm, c.grad_norm, "grad_norm");
      expect_near(d.clip_factor, c.clip_factor, "clip_factor");
      EXPECT_LT(c.clip_factor, 1);
      EXPECT_EQ(d.eval_loss.has_value(), c.eval_loss.has_value());
      if (c.eval_loss) expect_near(d.eval_loss.value(), *c.eval_loss, "eval_loss");
      expect_near(d.weight_squares, c.weight_squares, "weight_squares");
      expect_near(d.update->before_squares, c.update->before_squares, "before_squares");
    }
    EXPECT_TRUE(at::allclose(device.values, cpu.values, 1e-10, 1e-12));
    EXPECT_TRUE(at::allclose(device.first_moment, cpu.first_moment, 1e-8, 1e-12));
    EXPECT_TRUE(at::allclose(device.second_moment, cpu.second_moment, 1e-8, 1e-12));
    ASSERT_EQ(device.last_rows.size(), cpu.last_rows.size());
    for (std::size_t r = 0; r < cpu.last_rows.size(); ++r)
      for (const char* column : {"stream_variance", "stream_rms", "stream_grad_norm", "branch_ratio", "norm_input_rms",
                                 "token_norm_cv", "attention_entropy"}) {
        const auto d = measured_value(device.last_rows[r], column), c = measured_value(cpu.last_rows[r], column);
        ASSERT_EQ(d.has_value(), c.has_value()) << column;
        EXPECT_NEAR(d.value_or(0), c.value_or(0), 1e-9 * std::abs(c.value_or(0))) << column;
      }
  }
}

TEST(DevicePath, ReadsOnceAStepAndNowhereElse) {
  for (const Placement placement : {Placement::pre, Placement::resi_dual, Placement::admin})
    for (const bool padded : {false, true}) {
      Config config = float64_config();
      config.model.placement = placement;
      config.model.dropout = 0.1;
      if (padded) config.data.padding_fraction = 0.3;
      const WaitingOperators waiting;
      const Recorded run = recorded(config, true);
      EXPECT_EQ(run.read_backs, config.train.steps) << name_of(placement);
      EXPECT_THAT(WaitingOperators::called(), ::testing::IsEmpty()) << name_of(placement);
    }
}

TEST(DevicePath, TheCountersOfThisTestCount) {
  // With the same eyes: the path of the CPU reads the loss, and reading a device's sums is one transfer.
  const WaitingOperators waiting;
  recorded(float64_config(), false);
  EXPECT_THAT(WaitingOperators::called(), ::testing::Contains("aten::item"));
  const std::int64_t before = read_backs();
  Stack stack(tiny_config(), at::kCPU);
  const CpuAsDevice as_device;
  gradient_sums(stack.store());
  EXPECT_EQ(read_backs(), before + 1);
}

TEST(DevicePath, ANonFiniteStepIsDecidedAsOnTheCpu) {
  const auto poison = [](Stack& stack) {
    stack.store().parameter("block.1.ffn.in.weight").detach().flatten()[0] = std::numeric_limits<double>::quiet_NaN();
  };
  for (const OnNonfinite policy : {OnNonfinite::stop, OnNonfinite::skip, OnNonfinite::proceed}) {
    Config config = float64_config();
    config.train.on_nonfinite = policy;
    const Recorded device = recorded(config, true, poison), cpu = recorded(config, false, poison);
    ASSERT_EQ(device.steps.size(), cpu.steps.size());
    for (std::size_t s = 0; s < cpu.steps.size(); ++s) {
      EXPECT_EQ(device.steps[s].nonfinite, cpu.steps[s].nonfinite);
      EXPECT_EQ(device.steps[s].skipped, cpu.steps[s].skipped);
      EXPECT_EQ(device.steps[s].finding->tensor, cpu.steps[s].finding->tensor);
      EXPECT_EQ(device.steps[s].finding->activation_finite, cpu.steps[s].finding->activation_finite);
    }
    EXPECT_TRUE(at::equal(device.values.isfinite(), cpu.values.isfinite()));
  }
}

TEST(DevicePath, AnUpdateThatOverflowsIsNotWritten) {
  Config config = float64_config();
  config.train.optimizer = OptimizerKind::sgd;
  config.train.clip_norm.reset();
  config.train.learning_rate = 1e308;
  config.train.warmup = 0;
  const Recorded device = recorded(config, true), cpu = recorded(config, false);
  ASSERT_EQ(device.steps.size(), 1u);
  ASSERT_EQ(cpu.steps.size(), 1u);
  EXPECT_EQ(device.steps[0].finding->kind, NonfiniteFinding::Kind::update);
  EXPECT_EQ(device.steps[0].finding->tensor, cpu.steps[0].finding->tensor);
  EXPECT_TRUE(at::equal(device.values, cpu.values));
  EXPECT_EQ(device.first_moment.abs().max().item<double>(), 0);
}

}  // namespace
}  // namespace gradflow
