// The whole program: what a run does with values that are not finite.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "testing/run_of_program.h"

namespace gradflow::testing {
namespace {

using namespace ::testing;

class Nonfinite : public ProgramTest {
 protected:
  /// An update that throws the weights as far as a float reaches.
  static Words diverging(const Words& more = {}) { return Words{"optimizer=sgd", "learning_rate=1e30"} + more; }
};

TEST_F(Nonfinite, StopsTheRunWithItsRowsWritten) {
  const Outcome outcome = run_gradflow(command(tiny(), diverging()));
  EXPECT_EQ(outcome.code, 3);
  const RunFiles run{folder_ / "run"};
  const CsvTable steps = run.steps(), layers = run.layers();
  ASSERT_GE(steps.rows(), 2u);
  const std::size_t last = steps.rows() - 1;
  const std::int64_t step = steps.integer(last, 0);
  EXPECT_LT(step, 5);

  // The row says what was found; before the optimizer wrote, so that the weights are finite and nothing was updated.
  const auto text = [&](const char* name) { return steps.text(last, steps.column(name)); };
  EXPECT_GT(steps.integer(last, steps.column("nonfinite")), 0);
  EXPECT_THAT(text("grad_norm"), AnyOf("nan", "inf"));
  EXPECT_TRUE(std::isfinite(number(steps, last, "weight_norm")));
  EXPECT_EQ(text("update_norm"), "");
  for (const std::string name : {"steps.csv", "layers.csv", "spikes.csv", "timing.csv"})
    for (const std::string& line : lines_of(run.file(name)))
      for (const char* wrong : {"NaN", "-nan", "NAN", "Inf", "INF", "infinity", "null"})
        EXPECT_THAT(line, Not(HasSubstr(wrong))) << name;
  std::int64_t nonfinite = 0;
  for (std::int64_t layer = 0; layer <= 3; ++layer)
    for (const std::size_t row : rows_of(layers, step, layer))
      nonfinite += layers.integer(row, layers.column("nonfinite"));
  EXPECT_GT(nonfinite, 0);
  EXPECT_EQ(integers(layers, "step").back(), step);
  const CsvTable spikes = read_csv(run.file("spikes.csv"), spikes_columns());
  EXPECT_THAT(column(spikes, "kind"), Contains("nonfinite"));

  const auto manifest = run.json("manifest.json");
  const auto summary = run.json("summary.json");
  EXPECT_EQ(manifest["status"], "diverged");
  EXPECT_EQ(summary["verdict"], "diverged");
  EXPECT_EQ(summary["nonfinite"]["step"], step);
  const std::string tensor = summary["nonfinite"]["tensor"];
  EXPECT_THAT(manifest["reason"].get<std::string>(),
              AllOf(HasSubstr("step " + std::to_string(step)), HasSubstr(tensor)));
  EXPECT_THAT(outcome.error_lines().back(), AllOf(StartsWith("gradflow: warning: "), HasSubstr(tensor),
                                                  HasSubstr("step " + std::to_string(step)), HasSubstr("layer ")));
  EXPECT_THAT(outcome.out, HasSubstr("diverged"));

  // Done: the same command finds it and says the same.
  const Outcome again = run_gradflow(command(tiny(), diverging()));
  EXPECT_EQ(again.code, 3);
  EXPECT_THAT(again.err, HasSubstr("already diverged"));
}

TEST_F(Nonfinite, SkippingKeepsTheWeightsAndGoesOn) {
  const RunFiles run = this->run(tiny(), diverging({"on_nonfinite=skip"}));
  const CsvTable steps = run.steps();
  ASSERT_EQ(steps.rows(), 5u);
  std::size_t skipped = 0;
  for (std::size_t row = 0; row < 5; ++row) {
    EXPECT_TRUE(std::isfinite(number(steps, row, "weight_norm")));
    if (steps.integer(row, steps.column("nonfinite")) == 0) continue;
    ++skipped;
    EXPECT_EQ(number(steps, row, "update_norm"), 0);
    EXPECT_EQ(number(steps, row, "weight_norm"), number(steps, row - 1, "weight_norm"));
  }
  EXPECT_GT(skipped, 0u);
  EXPECT_EQ(run.json("summary.json")["skipped_steps"], skipped);
  EXPECT_EQ(run.json("manifest.json")["status"], "finished");
}

TEST_F(Nonfinite, ContinuingRunsToTheEnd) {
  const RunFiles run = this->run(tiny(), diverging({"on_nonfinite=continue", "layers_every=1"}));
  const CsvTable steps = run.steps();
  ASSERT_EQ(steps.rows(), 5u);
  EXPECT_EQ(column(steps, "loss").back(), "nan");
  EXPECT_EQ(column(steps, "weight_norm").back(), "nan");
  EXPECT_EQ(run.json("manifest.json")["status"], "finished");
  EXPECT_TRUE(run.json("summary.json")["final_loss"].is_null());
}

TEST_F(Nonfinite, AnUpdateThatOverflowsIsNotWritten) {
  // The gradient is finite, the learning rate times it is beyond a float: found before the optimizer writes, too.
  const Words overflowing = {"norm=none", "placement=none", "embedding_std=30", "optimizer=sgd", "learning_rate=3e38"};
  const Outcome outcome = run_gradflow(command(tiny(), overflowing + Words{"steps=1"}));
  EXPECT_EQ(outcome.code, 3);
  EXPECT_TRUE(std::isfinite(number(RunFiles{folder_ / "run"}.steps(), 0, "weight_norm")));
}

}  // namespace
}  // namespace gradflow::testing
