#include "train/recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <nlohmann/json.hpp>

#include "core/files.h"
#include "core/interrupt.h"
#include "output/csv_table.h"
#include "testing/temporary_folder.h"
#include "testing/training.h"
#include "train/summary.h"

namespace gradflow {
namespace {

using ::testing::ElementsAre;

std::string text(const CsvTable& table, std::size_t row, std::string_view column) {
  return std::string(table.text(row, table.column(column)));
}

/// Feeds made-up steps to a recorder: a loss and gradients that hardly move, but for what a test changes.
class RecorderTest : public ::testing::Test {
 protected:
  RecorderTest() : config_(testing::tiny_config()) { config_.train.steps = 100; }

  StepResult step(std::int64_t number) {
    const std::size_t tensors = stack().store().entries().size();
    const double wobble = 1 + 0.01 * std::sin(static_cast<double>(number));
    StepResult result{.step = number, .tokens = 32 * number, .learning_rate = 1e-3, .loss = 2 * wobble};
    result.gradients = {std::vector<double>(tensors, wobble), std::vector<std::int64_t>(tensors), 0};
    result.grad_norm = result.gradients.norm();
    result.weight_squares.assign(tensors, 4);
    result.update =
        UpdateSums{result.weight_squares, result.weight_squares, std::vector<double>(tensors, 1e-6 * wobble)};
    result.last = number == config_.train.steps;
    return result;
  }

  Stack& stack() {
    if (!stack_) stack_.emplace(config_, at::kCPU);
    return *stack_;
  }

  void scale_gradient(StepResult& result, const std::string& prefix, double factor) {
    for (std::size_t e = 0; e < result.gradients.squares.size(); ++e)
      if (stack().store().entries()[e].name.starts_with(prefix)) result.gradients.squares[e] *= factor * factor;
    result.grad_norm = result.gradients.norm();
  }

  TemporaryFolder folder_;
  Config config_;
  std::optional<Stack> stack_;
};

TEST_F(RecorderTest, NamesTheSubLayerThatMovedBeforeTheLoss) {
  Recorder recorder(config_, stack(), at::kCPU, folder_.path());
  recorder.begin();
  for (std::int64_t number = 1; number <= 100; ++number) {
    StepResult result = step(number);
    // The feed-forward of block 2 jumps two steps before the loss; too small a share to show in the global norm.
    if (number >= 58 && number <= 60) scale_gradient(result, "block.2.ffn.", 3);
    if (number == 60) result.loss = 5;
    recorder.step_done(result);
    EXPECT_EQ(recorder.spikes().loss, number == 60);
  }
  recorder.finish();
  const CsvTable spikes = read_csv(folder_ / "spikes.csv");
  ASSERT_EQ(spikes.rows(), 1u);
  EXPECT_EQ(text(spikes, 0, "series"), "loss");
  EXPECT_EQ(text(spikes, 0, "peak_step"), "60");
  EXPECT_EQ(text(spikes, 0, "peak"), "5");
  EXPECT_EQ(text(spikes, 0, "first_step"), "58");
  EXPECT_EQ(text(spikes, 0, "first_layer"), "2");
  EXPECT_EQ(text(spikes, 0, "first_sublayer"), "ffn");
  EXPECT_EQ(text(spikes, 0, "first_quantity"), "grad_norm");
  EXPECT_EQ(recorder.spike_rows(SpikeSeries::loss), 1);
}

TEST_F(RecorderTest, WritesTheStepsThatAreDueAndAlwaysTheFirstAndLast) {
  config_.record.steps_every = 40;
  config_.record.layers_every = 70;
  Recorder recorder(config_, stack(), at::kCPU, folder_.path());
  recorder.begin();
  for (std::int64_t number = 1; number <= 100; ++number) {
    StepResult result = step(number);
    if (number == 55) result.eval_loss = 1.5;
    recorder.step_done(result);
  }
  recorder.finish();
  const CsvTable steps = read_csv(folder_ / "steps.csv");
  std::vector<std::string> numbers;
  for (std::size_t row = 0; row < steps.rows(); ++row) numbers.emplace_back(text(steps, row, "step"));
  EXPECT_THAT(numbers, ElementsAre("1", "40", "55", "80", "100"));
  EXPECT_EQ(text(steps, 2, "eval_loss"), "1.5");
  EXPECT_EQ(text(steps, 1, "eval_loss"), "");
  const CsvTable layers = read_csv(folder_ / "layers.csv");
  EXPECT_EQ(layers.rows(), 3 * stack().layout().segments.size());
}

TEST_F(RecorderTest, LooksOnlyWhenLayerRowsAreDue) {
  config_.record.layers_every = 10;
  Recorder recorder(config_, stack(), at::kCPU, folder_.path());
  recorder.begin();
  EXPECT_NE(recorder.watcher_for(1), nullptr);
  EXPECT_EQ(recorder.watcher_for(9), nullptr);
  EXPECT_NE(recorder.watcher_for(10), nullptr);
}

TEST_F(RecorderTest, WithoutQuantitiesNeverLooks) {
  config_.record.quantities = {"none"};
  Recorder recorder(config_, stack(), at::kCPU, folder_.path());
  recorder.begin();
  EXPECT_EQ(recorder.watcher_for(1), nullptr);
}

TEST_F(RecorderTest, AStepThatIsNotFiniteIsAlwaysWritten) {
  config_.record.steps_every = 1000;
  config_.record.layers_every = 1000;
  Recorder recorder(config_, stack(), at::kCPU, folder_.path());
  recorder.begin();
  recorder.step_done(step(1));
  StepResult bad = step(2);
  bad.loss = std::nan("");
  bad.nonfinite = 1;
  bad.finding = NonfiniteFinding{};
  bad.update.reset();
  recorder.step_done(bad);
  recorder.finish();
  const CsvTable steps = read_csv(folder_ / "steps.csv");
  ASSERT_EQ(steps.rows(), 2u);
  EXPECT_EQ(text(steps, 1, "loss"), "nan");
  EXPECT_EQ(text(steps, 1, "update_norm"), "");
  EXPECT_EQ(text(steps, 1, "nonfinite"), "1");
  EXPECT_EQ(read_csv(folder_ / "layers.csv").rows(), 2 * stack().layout().segments.size());
}

TEST_F(RecorderTest, RowsOwedOfAStepThatIsNotFiniteAreMadeWhenTheRunGoesOn) {
  config_.record.layers_every = 10;  // of step 2 only what is not finite is written
  config_.record.tensors = true;
  const auto record = [&](const std::string& folder, bool interrupted) {
    create_folders(folder);
    SavedState state;
    {
      Recorder recorder(config_, stack(), at::kCPU, folder);
      recorder.begin();
      recorder.step_done(step(1));
      StepResult bad = step(2);
      bad.finding = NonfiniteFinding{};
      if (interrupted) {
        catch_interrupts();
        ::raise(SIGTERM);
        ::sleep(4);  // nobody is that patient
      }
      recorder.step_done(bad);
      EXPECT_EQ(recorder.owes(), interrupted);
      recorder.save(state);
      forget_interrupt();
      for (const int signal : interrupting_signals) ::signal(signal, SIG_DFL);
    }
    Recorder recorder(config_, stack(), at::kCPU, folder);
    recorder.restore(state);
    recorder.reopen(state);
    recorder.go_on();
    recorder.finish();
    return read_file(folder + "/tensors.csv");
  };
  const std::string whole = record(folder_ / "whole", false);
  EXPECT_THAT(whole, ::testing::HasSubstr("\n2,"));
  EXPECT_EQ(record(folder_ / "cut", true), whole);
}

TEST_F(RecorderTest, TheSummaryHasProfilesOfTheFirstAndLastStep) {
  Recorder recorder(config_, stack(), at::kCPU, folder_.path());
  recorder.begin();
  RunAccount account;
  for (std::int64_t number = 1; number <= 100; ++number) {
    StepResult result = step(number);
    scale_gradient(result, "block.1.", number == 100 ? 0.25 : 1);
    recorder.step_done(result);
    account.step_done(result);
  }
  recorder.finish();
  const auto source = make_source(config_);
  const RunSummary summary{config_, stack(), source->facts(), account, recorder, {}};
  const nlohmann::ordered_json json = summary.json();
  EXPECT_EQ(json.at("steps"), 100);
  const auto& first = json.at("profiles").at("first_step").at("grad_norm");
  const auto& last = json.at("profiles").at("last_step").at("grad_norm");
  EXPECT_NEAR(first.at("ratio").get<double>(), 1, 1e-9);
  EXPECT_NEAR(last.at("ratio").get<double>(), 0.25, 1e-9);
  EXPECT_EQ(last.at("smallest").at("block"), 1);
  EXPECT_NEAR(last.at("rate_per_block").get<double>(), std::log(0.25), 1e-9);
  EXPECT_EQ(json.at("parameters").at("count"), stack().layout().parameter_count());
  EXPECT_TRUE(json.at("profiles").at("last_step").find("stream_variance") == json.at("profiles").at("last_step").end());
}

TEST(LayerRows, ATiedHeadHasNoParametersOfItsOwn) {
  Config config = testing::tiny_config();
  config.model.tie_embeddings = true;
  testing::TrainedRun run = testing::train(resolved(config));
  const std::vector<LayerRow> rows = layer_rows(*run.stack, run.steps.back(), {});
  EXPECT_EQ(rows.back().sublayer, "head");
  EXPECT_FALSE(rows.back().parameters.grad_norm.has_value());
  EXPECT_FALSE(rows.back().parameters.nonfinite.has_value());
  EXPECT_GT(rows.front().parameters.grad_norm.value(), 0);
}

TEST(LayerRows, UpdateRatioOfZeroWeightsIsEmpty) {
  Config config = testing::tiny_config();
  config.model.norm = Norm::none;
  config.model.placement = Placement::none;
  config.model.residual = Residual::rezero;
  config.model.bias = false;
  config.train.steps = 1;
  testing::TrainedRun run = testing::train(resolved(config));
  std::size_t empty = 0;
  for (const ParameterNumbers& numbers : tensor_numbers(run.steps[0])) {
    if (numbers.update_ratio) continue;
    ++empty;
    EXPECT_EQ(numbers.update_norm, numbers.weight_norm);
  }
  EXPECT_EQ(empty, 4u);  // the four gates start at 0
}

}  // namespace
}  // namespace gradflow
