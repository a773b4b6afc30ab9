#include "claims/evaluation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "claims/run_statistics.h"
#include "config/json_reader.h"
#include "config/resolved.h"
#include "core/error.h"
#include "core/statistics.h"
#include "testing/made_run.h"
#include "testing/temporary_folder.h"

namespace gradflow {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Lines = std::vector<std::string>;

Lines faults_of(const std::function<void(Faults&)>& work) {
  try {
    Faults faults;
    work(faults);
    faults.raise();
  } catch (const Error& error) {
    return error.lines();
  }
  return {};
}

Statistic statistic(const std::string& text) {
  Faults faults;
  const JsonValue value = read_json(text, "c.json", faults);
  Statistic result = read_statistic(value, "statistic", "c.json", faults);
  faults.raise();
  return result;
}

Lines faults_in(const std::string& text) {
  return faults_of([&](Faults& faults) {
    const JsonValue value = read_json(text, "c.json", faults);
    read_statistic(value, "statistic", "c.json", faults);
  });
}

// ---- reading
// ---------------------------------------------------------------------------------------------------------

TEST(Statistics, UnknownNamesNameTheNearest) {
  EXPECT_THAT(faults_in(R"({"name": "finall_loss"})"),
              ElementsAre("c.json:1: statistic.name: \"finall_loss\" is no statistic; did you mean final_loss?"));
  EXPECT_THAT(faults_in(R"({"name": "layer_value", "column": "stream_rmss", "block": "last", "step": "first"})"),
              ElementsAre("c.json:1: statistic.column: \"stream_rmss\" is unknown; did you mean stream_rms?"));
  EXPECT_THAT(faults_in(R"({"name": "final_loss", "wher": {}})"),
              ElementsAre("c.json:1: statistic.wher: unknown key; did you mean where?"));
  EXPECT_THAT(faults_in(R"({"name": "final_loss", "where": {"model.dept": 3}})"),
              ElementsAre(HasSubstr("statistic.where.model.dept: unknown key; did you mean model.depth?")));
}

TEST(Statistics, EveryFaultIsNamedAtOnceWithItsPlace) {
  EXPECT_THAT(
      faults_in("{\"name\": \"difference\", \"of\": [\n{\"name\": \"x\"},\n{\"name\": \"step_value\"}]}"),
      ElementsAre(HasSubstr("c.json:2: statistic.of.1.name"), HasSubstr("c.json:3: statistic.of.2.column: missing"),
                  HasSubstr("c.json:3: statistic.of.2.step: missing")));
}

TEST(Statistics, OperandsMustBeThere) {
  EXPECT_THAT(faults_in(R"({"name": "logarithm"})"), ElementsAre(HasSubstr("statistic.of: missing")));
  EXPECT_THAT(faults_in(R"({"name": "ratio", "of": [{"name": "final_loss"}]})"),
              ElementsAre(HasSubstr("statistic.of: must be a list of 2 statistics")));
}

TEST(Statistics, TheTableNamesEveryOne) {
  for (const StatisticRow& row : statistics()) {
    EXPECT_EQ(row_of(row.kind).name, row.name);
    EXPECT_THAT(statistics_table(), HasSubstr("| `" + std::string(row.name) + "` |"));
  }
}

// ---- combining
// -------------------------------------------------------------------------------------------------------

/// Runs of two placements at three depths with two seeds, whose number is given by a formula.
class CombinedStatistics : public ::testing::Test {
 protected:
  CombinedStatistics() {
    for (const std::int64_t seed : {1, 2})
      for (const Placement placement : {Placement::pre, Placement::post})
        for (const std::int64_t depth : {4, 8, 16}) {
          Config config = testing::transformer_config(depth, placement, seed);
          cells_.push_back(resolved(config));
        }
  }

  double value(const std::string& text, std::int64_t seed, const std::function<double(const Config&)>& number) const {
    return evaluate(statistic(text), cells_, seed,
                    [&](const Statistic&, std::size_t cell) { return number(cells_[cell]); });
  }

  std::vector<Config> cells_;
};

double by_depth(const Config& config) { return static_cast<double>(config.model.depth); }

TEST_F(CombinedStatistics, ADifferenceIsTakenBetweenRunsOfTheSameSeed) {
  const auto number = [](const Config& config) {
    return 10.0 * static_cast<double>(config.seed) + (config.model.placement == Placement::post ? 3.0 : 0.0);
  };
  const std::string text = R"({"name": "difference", "where": {"model.depth": 8}, "of": [
    {"name": "final_loss", "where": {"model.placement": "post"}}, {"name": "final_loss", "where": {"model.placement": "pre"}}]})";
  EXPECT_DOUBLE_EQ(value(text, 1, number), 3);
  EXPECT_DOUBLE_EQ(value(text, 2, number), 3);
}

TEST_F(CombinedStatistics, ASlopeOnLogarithmsIsAnExponent) {
  const std::string text = R"({"name": "slope", "over": "model.depth", "x": "log", "y": "log",
    "where": {"model.placement": "pre"}, "of": {"name": "final_loss"}})";
  EXPECT_NEAR(value(text, 1, [](const Config& c) { return 7 * std::pow(by_depth(c), -0.5); }), -0.5, 1e-12);
  const std::string linear = R"({"name": "slope", "over": "model.depth", "x": "linear", "y": "linear", "from": 8,
    "where": {"model.placement": "pre"}, "of": {"name": "final_loss"}})";
  EXPECT_NEAR(value(linear, 1, [](const Config& c) { return by_depth(c) == 4 ? 1e9 : 3 * by_depth(c); }), 3, 1e-12)
      << "what lies below `from` is left out";
}

std::string over_depth(const std::string& name, const std::string& of = R"({"name": "final_loss"})") {
  return R"({"name": ")" + name + R"(", "over": "model.depth", "where": {"model.placement": "pre"}, "of": )" + of + "}";
}

TEST_F(CombinedStatistics, OverTheValuesOfAKey) {
  EXPECT_DOUBLE_EQ(value(over_depth("smallest"), 1, by_depth), 4);
  EXPECT_DOUBLE_EQ(value(over_depth("largest"), 1, by_depth), 16);
  EXPECT_DOUBLE_EQ(value(over_depth("average"), 1, by_depth), 28.0 / 3);
  EXPECT_DOUBLE_EQ(value(over_depth("sensitivity"), 1, by_depth), 28.0 / 3 - 4);
  EXPECT_DOUBLE_EQ(
      value(over_depth("largest_working"), 1, [](const Config& c) { return by_depth(c) < 10 ? 1.0 : 0.0; }), 8);
  EXPECT_THROW(value(over_depth("largest_working"), 1, [](const Config&) { return 0.0; }), Error);
}

TEST_F(CombinedStatistics, TheBestKeyIsTheVertexOfAParabola) {
  // On the logarithmic scale the three depths are evenly spaced; the vertex of (ln x − ln 9)² is 9.
  const auto parabola = [](const Config& c) { return std::pow(std::log(by_depth(c) / 9), 2); };
  EXPECT_NEAR(value(over_depth("best_key"), 1, parabola), 9, 1e-9);
  EXPECT_DOUBLE_EQ(value(over_depth("best_key"), 1, by_depth), 4) << "at an end it is the value itself";
}

TEST_F(CombinedStatistics, OfOneNumber) {
  const auto one = [&](const std::string& name) {
    return value(R"({"name": ")" + name +
                     R"(", "where": {"model.placement": "pre", "model.depth": 4}, "of": {"name": "final_loss"}})",
                 1, [](const Config&) { return -3.0; });
  };
  EXPECT_DOUBLE_EQ(one("square"), 9);
  EXPECT_DOUBLE_EQ(one("absolute"), 3);
  EXPECT_THROW(one("logarithm"), Error);
}

// ---- checks before any run
// -------------------------------------------------------------------------------------------

Lines check(const std::string& text, const std::vector<Config>& cells) {
  return faults_of([&](Faults& faults) { check_statistic(statistic(text), cells, "c.json", faults); });
}

TEST_F(CombinedStatistics, ALeafMustFitOneRunOfASeed) {
  EXPECT_THAT(check(R"({"name": "final_loss", "where": {"model.placement": "pre"}})", cells_),
              ElementsAre(AllOf(HasSubstr("3 runs of a seed"), HasSubstr("differ in model.depth"))));
  EXPECT_THAT(check(R"({"name": "final_loss", "where": {"model.depth": 5}})", cells_),
              ElementsAre("c.json:1: statistic.where.model.depth: 5 is no value of the experiment"));
  EXPECT_THAT(check(over_depth("smallest"), cells_), ElementsAre());
  EXPECT_THAT(check(R"({"name": "smallest", "over": "data.seed", "where": {"model.depth": 4, "model.placement": "pre"},
                        "of": {"name": "final_loss"}})",
                    cells_),
              ElementsAre(HasSubstr("data.seed takes 1 value here")));
  EXPECT_THAT(check(R"({"name": "smallest", "over": "model.placement", "where": {"model.depth": 4},
                        "of": {"name": "final_loss"}})",
                    cells_),
              ElementsAre(HasSubstr("no number")));
}

TEST_F(CombinedStatistics, WhatIsReadMustBeRecorded) {
  const std::string where = R"("where": {"model.placement": "pre", "model.depth": 4}})";
  EXPECT_THAT(
      check(R"({"name": "layer_value", "column": "mean_share", "block": "last", "step": "last", )" + where, cells_),
      ElementsAre(HasSubstr("column mean_share is not measured; add it to record.quantities")));
  EXPECT_THAT(check(R"({"name": "layer_value", "column": "stream_rms", "block": 5, "step": "last", )" + where, cells_),
              ElementsAre(HasSubstr("block 5 is beyond model.depth 4")));
  EXPECT_THAT(check(R"({"name": "layer_value", "column": "stream_rms", "block": 1, "step": 15, )" + where, cells_),
              ElementsAre(HasSubstr("step 15 has no row with record.layers_every 10")));
  EXPECT_THAT(check(R"({"name": "step_value", "column": "loss", "step": 201, )" + where, cells_),
              ElementsAre(HasSubstr("step 201 is beyond train.steps 200")));
  EXPECT_THAT(
      check(R"({"name": "tensor_value", "tensor": "ffn.out.weight", "column": "grad_norm", "block": 1, "step": 1, )" +
                where,
            cells_),
      ElementsAre(HasSubstr("set record.tensors to true")));
  EXPECT_THAT(check(R"({"name": "quantity_value", "quantity": "snr", "step": 1, )" + where, cells_),
              ElementsAre(HasSubstr("snr is not measured; add it to record.quantities")));
  EXPECT_THAT(check(R"({"name": "layer_value", "column": "stream_rms", "block": 4, "step": 20, )" + where, cells_),
              ElementsAre());
}

// ---- leaves
// ----------------------------------------------------------------------------------------------------------

/// A run folder with chosen numbers.
class Leaves : public ::testing::Test {
 protected:
  testing::MadeRun made() {
    testing::MadeRun run;
    run.config = testing::transformer_config(4, Placement::pre, 1);
    run.config.train.steps = 20;
    return run;
  }
  double read(const std::string& text, const testing::MadeRun& run) {
    const std::string path = folder_ / "run";
    testing::make_run(path, run);
    return read_again(text);
  }
  double read_again(const std::string& text) {
    const auto found = read_run(folder_ / "run");
    if (const LeftOut* left_out = std::get_if<LeftOut>(&found)) throw Error(left_out->reason);
    return read_leaf(statistic(text), std::get<RecordedRun>(found));
  }

  TemporaryFolder folder_;
};

TEST_F(Leaves, OfTheLoss) {
  testing::MadeRun run = made();
  EXPECT_DOUBLE_EQ(read(R"({"name": "final_loss"})", run), 1.7);
  EXPECT_DOUBLE_EQ(read(R"({"name": "first_loss"})", run), 1.7);
  EXPECT_DOUBLE_EQ(read(R"({"name": "above_unigram"})", run), 1.7 - 3.9);
  EXPECT_DOUBLE_EQ(read(R"({"name": "verdict_is", "verdict": "learned"})", run), 1);
  EXPECT_DOUBLE_EQ(read(R"({"name": "verdict_is", "verdict": "stuck"})", run), 0);
  EXPECT_DOUBLE_EQ(read(R"({"name": "trains"})", run), 1);
  EXPECT_DOUBLE_EQ(read(R"({"name": "step_value", "column": "grad_norm", "step": 7})", run), 1);
  run.loss = 2.6;  // learned, but not below the middle of 1.2 and 3.9
  EXPECT_DOUBLE_EQ(read(R"({"name": "trains"})", run), 0);
}

TEST_F(Leaves, OfARunThatStopped) {
  testing::MadeRun run = made();
  run.status = RunStatus::diverged;
  EXPECT_THROW(read(R"({"name": "final_loss"})", run), Error);
  EXPECT_DOUBLE_EQ(read(R"({"name": "capped_loss"})", run), 1.7) << "the first loss";
  EXPECT_DOUBLE_EQ(read(R"({"name": "trains"})", run), 0);
}

TEST_F(Leaves, OfTheLayers) {
  testing::MadeRun run = made();
  run.variance_rate = 0.25;
  run.gradient_rate = -0.5;
  const std::string variance = R"("column": "stream_variance", "step": "last")";
  EXPECT_NEAR(read(R"({"name": "layer_value", "block": 2, )" + variance + "}", run), std::exp(0.5), 1e-12);
  EXPECT_NEAR(read(R"({"name": "depth_rate", )" + variance + "}", run), 0.25, 1e-12);
  EXPECT_NEAR(read(R"({"name": "first_last_ratio", )" + variance + "}", run), std::exp(-0.75), 1e-12);
  EXPECT_NEAR(read(R"({"name": "depth_rate", "column": "stream_grad_norm", "step": "first"})", run), -0.5, 1e-12)
      << "gradients count from the output down";
  EXPECT_NEAR(read(R"({"name": "depth_correlation", )" + variance + "}", run), 1, 1e-12);
  EXPECT_NEAR(read(R"({"name": "over_layers", "take": "largest", )" + variance + "}", run), std::exp(1.0), 1e-12);
  EXPECT_NEAR(read(R"({"name": "over_layers", "take": "median", )" + variance + "}", run),
              0.5 * (std::exp(0.5) + std::exp(0.75)), 1e-12);
  const std::vector<double> x{0, std::log(2), std::log(3), std::log(4)}, y{0.25, 0.5, 0.75, 1};
  EXPECT_NEAR(read(R"({"name": "depth_exponent", )" + variance + "}", run), fit_line(x, y)->slope, 1e-12);
  EXPECT_THROW(read(R"({"name": "depth_correlation", "column": "grad_norm", "step": "last"})", run), Error)
      << "the same in every block";
  EXPECT_THROW(read(R"({"name": "layer_value", "column": "branch_rms", "block": 1, "step": "last"})", run), Error)
      << "an empty cell";
}

TEST_F(Leaves, TheNoiseIsThatOfTheDifferences) {
  testing::make_run(folder_ / "run", made());
  std::string text = header_line(steps_columns()) + '\n';
  const std::vector<double> losses{9, 9, 3, 1, 4, 1, 5};
  for (std::size_t i = 0; i < losses.size(); ++i)
    text += std::to_string(i + 1) + ",64,0.001," + std::to_string(losses[i]) + ",1,1,1,1,,0,0,0\n";
  write_file_atomically(folder_ / "run" + "/steps.csv", text);
  const std::vector<double> differences{-2, 3, -3, 4};
  EXPECT_NEAR(read_again(R"({"name": "loss_noise", "from": 3})"), *sample_std(differences) / std::sqrt(2.0), 1e-12);
}

TEST_F(Leaves, OfTensorsAndSpikesAndQuantities) {
  testing::MadeRun run = made();
  run.spikes.resize(2);
  run.spikes[1].series = SpikeSeries::grad_norm;
  EXPECT_DOUBLE_EQ(read(R"({"name": "spike_count", "series": "loss"})", run), 1);
  CsvFile tensors(folder_ / "run" + "/tensors.csv", tensors_columns());
  for (const std::int64_t step : {1, 20})
    for (const std::int64_t block : {1, 4})
      tensors.write(std::array<Cell, 7>{step, "block." + std::to_string(block) + ".ffn.out.weight",
                                        static_cast<double>(100 * step + block), 1.0, 1.0, 1.0, 1.0});
  tensors.flush();
  EXPECT_DOUBLE_EQ(
      read_again(
          R"({"name": "tensor_value", "tensor": "ffn.out.weight", "column": "grad_norm", "block": "last", "step": "first"})"),
      104);
  EXPECT_THROW(
      read_again(
          R"({"name": "tensor_value", "tensor": "ffn.out.weight", "column": "grad_norm", "block": 2, "step": "first"})"),
      Error);
  CsvFile quantities(folder_ / "run" + "/quantities.csv", quantities_columns());
  quantities.write(std::array<Cell, 5>{std::int64_t{1}, std::int64_t{4}, Cell{}, std::string("snr"), 12.5});
  quantities.write(std::array<Cell, 5>{std::int64_t{1}, Cell{}, Cell{}, std::string("output_change"), 0.25});
  quantities.flush();
  EXPECT_DOUBLE_EQ(read_again(R"({"name": "quantity_value", "quantity": "snr", "block": "last", "step": 1})"), 12.5);
  EXPECT_DOUBLE_EQ(read_again(R"({"name": "quantity_value", "quantity": "output_change", "step": 1})"), 0.25);
}

}  // namespace
}  // namespace gradflow
