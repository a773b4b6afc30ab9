// Ten optimizer steps of every train-*.json case, made by an independent float64 program: loss, learning rate, gradient
// norm, clipping, update norm and weight norm pin optimizer, decay groups, schedule, accumulation and tying.

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "testing/device.h"
#include "testing/golden.h"
#include "testing/training.h"

namespace gradflow {
namespace {

using testing::golden_case;
using testing::golden_config;
using testing::golden_names;

/// ‖Δθ‖ without the key biases. Softmax does not see them: their true gradient is zero, and Adam makes steps of what
/// rounding leaves of it, which in float32 is not the rounding of the float64 reference, where it is nothing.
double update_norm(const testing::TrainedRun& run, const StepResult& step) {
  std::vector<double> squares = step.update->update_squares;
  for (std::size_t e = 0; e < squares.size(); ++e)
    if (run.stack->store().entries()[e].name.ends_with(".k.bias")) squares[e] = 0;
  return root_of_sum(squares);
}

/// The reference backend where the golden tests run.
testing::TrainedRun train_on_test_device(const Config& config) {
  const at::Device device = testing::test_device();
  testing::TrainedRun run{
      make_source(config), std::make_unique<Stack>(config, device, make_reference_segments), {}, {}};
  testing::StepCollector collector;
  Trainer(config, *run.stack, *run.source, device, {&collector}).run();
  run.steps = std::move(collector.steps);
  return run;
}

class GoldenTrajectory : public ::testing::TestWithParam<std::string> {
 protected:
  void reproduce(Dtype dtype, double relative) {
    const nlohmann::json golden = golden_case(GetParam());
    const Config config = golden_config(golden.at("config"), dtype);
    const testing::TrainedRun run = train_on_test_device(config);
    ASSERT_EQ(run.steps.size(), golden.at("steps").size());
    for (std::size_t s = 0; s < run.steps.size(); ++s) {
      const nlohmann::json& row = golden.at("steps")[s];
      const StepResult& step = run.steps[s];
      SCOPED_TRACE("step " + std::to_string(step.step));
      const auto expect = [&](const char* name, double measured) {
        const double expected = row.at(name);
        EXPECT_LE(std::abs(measured - expected), relative * std::abs(expected))
            << name << ": measured " << measured << ", expected " << expected;
      };
      EXPECT_EQ(step.step, row.at("step").get<std::int64_t>());
      expect("loss", step.loss);
      expect("learning_rate", step.learning_rate);
      expect("grad_norm", step.grad_norm);
      expect("clip_factor", step.clip_factor);
      expect("update_norm", update_norm(run, step));
      expect("weight_norm", root_of_sum(step.weight_squares));
    }
  }
};

TEST_P(GoldenTrajectory, Float64) { reproduce(Dtype::float64, 1e-9); }
TEST_P(GoldenTrajectory, Float32) { reproduce(Dtype::float32, 1e-4); }

INSTANTIATE_TEST_SUITE_P(Cases, GoldenTrajectory, ::testing::ValuesIn(golden_names({"train-"})), [](const auto& test) {
  std::string name = test.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace gradflow
