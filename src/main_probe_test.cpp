// The command `probe`, and quantities on demand in a run.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "testing/run_of_program.h"

namespace gradflow::testing {
namespace {

using namespace ::testing;

class ProbeCommand : public ProgramTest {
 protected:
  Outcome probe(const Words& options, const std::string& out = "probe") {
    return run_gradflow(Words{"probe", tiny(), "--out", folder_ / out} + options);
  }
  CsvTable table(const std::string& name, std::span<const Column> columns, const std::string& out = "probe") {
    return read_csv(folder_ / out + "/" + name, columns);
  }
};

TEST_F(ProbeCommand, MeasuresEveryCombinationAndSeed) {
  const Outcome outcome = probe({"--depths", "1,3", "--placements", "pre,post", "--seeds", "3"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const CsvTable rows = table("probe.csv", probe_columns());
  std::set<std::string> stacks;
  for (std::size_t row = 0; row < rows.rows(); ++row)
    stacks.insert(std::string(rows.text(row, 0)) + " " + std::string(rows.text(row, 4)) + " " +
                  std::string(rows.text(row, 5)));
  EXPECT_EQ(stacks.size(), 12u);
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("placement"), HasSubstr("post"), HasSubstr("stream_grad_norm"),
                                 HasSubstr("first/last"), HasSubstr("files in ")));
  // Every mean is that of its rows.
  const CsvTable means = table("means.csv", probe_means_columns());
  double sum = 0, count = 0;
  for (std::size_t row = 0; row < rows.rows(); ++row)
    if (rows.text(row, 0) == "post" && rows.text(row, 4) == "3" && rows.text(row, 6) == "2" &&
        rows.text(row, 7) == "ffn" && rows.text(row, 8) == "grad_norm")
      sum += number(rows, row, "value"), ++count;
  bool found = false;
  for (std::size_t row = 0; row < means.rows(); ++row)
    if (means.text(row, 0) == "post" && means.text(row, 4) == "3" && means.text(row, 5) == "2" &&
        means.text(row, 6) == "ffn" && means.text(row, 7) == "grad_norm") {
      found = true;
      EXPECT_EQ(count, 3);
      EXPECT_DOUBLE_EQ(number(means, row, "mean"), sum / count);
      EXPECT_LT(number(means, row, "low"), sum / count);
    }
  EXPECT_TRUE(found);
}

TEST_F(ProbeCommand, ShowsTheFirstStepOfTheRunWithThatSeed) {
  ASSERT_EQ(probe({"--seeds", "2"}).code, 0);
  const CsvTable rows = table("probe.csv", probe_columns());
  const RunFiles run = this->run(tiny(), {"backend=aten", "seed=2", "steps=1"});
  const CsvTable layers = run.layers();
  std::size_t compared = 0;
  for (std::size_t row = 0; row < rows.rows(); ++row) {
    if (rows.text(row, 5) != "2") continue;
    for (std::size_t l = 0; l < layers.rows(); ++l)
      if (layers.text(l, 1) == rows.text(row, 6) && layers.text(l, 2) == rows.text(row, 7)) {
        const std::string quantity(rows.text(row, 8));
        // The weights' norm is that before the update here.
        if (quantity == "weight_norm") continue;
        EXPECT_EQ(layers.text(l, layers.column(quantity)), rows.text(row, rows.column("value"))) << quantity;
        ++compared;
      }
  }
  EXPECT_GT(compared, 30u);
}

TEST_F(ProbeCommand, IsTheSameTwice) {
  ASSERT_EQ(probe({"--seeds", "2", "--quantities", "all"}, "one").code, 0);
  ASSERT_EQ(probe({"--seeds", "2", "--quantities", "all"}, "two").code, 0);
  for (const char* file : {"probe.csv", "means.csv", "probe.json", "config.json"})
    EXPECT_EQ(lines_of(folder_ / "one/" + file), lines_of(folder_ / "two/" + file)) << file;
}

TEST_F(ProbeCommand, JsonHasProfilesAndExponents) {
  const Outcome outcome = probe({"--depths", "8,12", "--seeds", "3", "--quantities", "stream_rms", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const nlohmann::json json = nlohmann::json::parse(outcome.out);
  ASSERT_EQ(json["profiles"].size(), 2u);
  const nlohmann::json& profile = json["profiles"][1];
  EXPECT_EQ(profile["depth"], 12);
  EXPECT_EQ(profile["quantity"], "stream_rms");
  EXPECT_EQ(profile["seeds"], 3);
  EXPECT_EQ(profile["verdict"], "rising");
  EXPECT_LT(profile["ratio"]["high"], 1);
  EXPECT_EQ(profile["predicted_places"], 24);
  ASSERT_EQ(json["over_depth"].size(), 1u);
  EXPECT_EQ(json["over_depth"][0]["depths"], (std::vector<int>{8, 12}));
  EXPECT_GT(json["over_depth"][0]["last_block"]["low"], 0);
}

TEST_F(ProbeCommand, AStackThatOverflowsHasNoRateOverDepth) {
  const Words overflowing = {"--placements", "none",
                             "--depths",     "6",
                             "--seeds",      "3",
                             "--quantities", "stream_grad_norm",
                             "--set",        "init_std=1000",
                             "--set",        "initialization=normal"};
  const Outcome outcome = probe(overflowing);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, ::testing::ContainsRegex("stream_grad_norm .* not finite +not finite"));
}

TEST_F(ProbeCommand, RefusesWhatCannotBeBuiltBeforeItBegins) {
  const Words axes = {"--placements", "pre,deepnorm", "--norms", "layernorm,none", "--residuals", "add,rezero"};
  const Outcome outcome = probe(axes);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(
      outcome.error_lines(),
      Contains(StartsWith("gradflow: error: placement=deepnorm norm=none residual=add: model.norm: none cannot ")));
  EXPECT_THAT(outcome.error_lines(), Contains(StartsWith("gradflow: error: placement=deepnorm norm=layernorm "
                                                         "residual=rezero: model.residual: rezero cannot ")));
  EXPECT_THAT(outcome.error_lines(), Contains(HasSubstr("--skip-invalid")));
  EXPECT_FALSE(exists("probe"));

  const Outcome skipped = probe(axes + Words{"--skip-invalid", "--seeds", "1", "--depths", "1"});
  EXPECT_EQ(skipped.code, 0) << skipped.err;
  EXPECT_THAT(skipped.err, HasSubstr("left out: placement=deepnorm norm=none residual=add depth=1"));
  const CsvTable rows = table("probe.csv", probe_columns());
  const Words placements = column(rows, "placement");
  EXPECT_THAT(placements, AllOf(Contains("pre"), Contains("deepnorm")));
}

TEST_F(ProbeCommand, RefusesWordsThatAreNone) {
  const Outcome outcome = probe({"--placements", "pots", "--depths", "0"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.error_lines(),
              ElementsAre(AllOf(HasSubstr("--placements: \"pots\""), HasSubstr("the nearest is post")),
                          HasSubstr("--depths: 0")));
  EXPECT_EQ(probe({"--seeds", "0"}).code, 2);
  const Outcome quantity = probe({"--quantities", "grad_nrm"});
  EXPECT_EQ(quantity.code, 2);
  EXPECT_THAT(quantity.error_lines(), ElementsAre(AllOf(StartsWith("gradflow: error: --quantities: "),
                                                        HasSubstr("grad_nrm"), HasSubstr("grad_norm"))));
  EXPECT_EQ(probe({"--set", "depth=0"}).code, 1);
}

TEST_F(ProbeCommand, ReplacesAProbeOnlyWhenToldTo) {
  ASSERT_EQ(probe({"--seeds", "1"}).code, 0);
  const Outcome again = probe({"--seeds", "1"});
  EXPECT_EQ(again.code, 1);
  EXPECT_THAT(again.err, HasSubstr("--overwrite"));
  EXPECT_EQ(probe({"--seeds", "1", "--overwrite"}).code, 0);
  this->run(tiny(), {"steps=1"}, "run");
  EXPECT_THAT(probe({"--seeds", "1"}, "run").err, HasSubstr("holds a run"));
}

TEST_F(ProbeCommand, WhatAStoppedProbeLeftIsReplaced) {
  ASSERT_EQ(probe({"--seeds", "1"}).code, 0);
  ASSERT_TRUE(std::filesystem::remove(folder_ / "probe/probe.json"));  // written last
  EXPECT_EQ(probe({"--seeds", "1"}).code, 0);
}

TEST_F(ProbeCommand, NeedsTheMemoryOfItsDeepestStack) {
  const Outcome outcome = probe({"--depths", "2,100", "--set", "width=16384", "--seeds", "1"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("the run needs about"));
  EXPECT_FALSE(exists("probe"));
}

TEST_F(ProbeCommand, TakesQuantitiesOnDemand) {
  const Outcome outcome = probe({"--seeds", "3", "--quantities", "jacobian,snr,lesion", "--placements", "pre,post"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("jacobian_sigma_max"), HasSubstr("snr")));
  const CsvTable rows = table("probe.csv", probe_columns());
  for (std::size_t row = 0; row < rows.rows(); ++row)
    if (rows.text(row, 8) == "jacobian_sigma_max") {
      EXPECT_EQ(rows.text(row, 6), "");
      EXPECT_GT(number(rows, row, "value"), 0);
    }
}

class QuantitiesOnDemand : public ProgramTest {};

TEST_F(QuantitiesOnDemand, AreWrittenAtStepZeroAndWhereLayerRowsAreDue) {
  const RunFiles run = this->run(
      tiny(), {R"(quantities=["standard","output_change","jacobian","hessian","snr","snr_raw","lesion","cka"])",
               "layers_every=2"});
  const CsvTable rows = read_csv(run.file("quantities.csv"), quantities_columns());
  const Words steps = column(rows, "step"), names = column(rows, "quantity");
  EXPECT_EQ(std::set<std::string>(steps.begin(), steps.end()), (std::set<std::string>{"0", "1", "2", "4", "5"}));
  EXPECT_EQ(
      std::set<std::string>(names.begin(), names.end()),
      (std::set<std::string>{"output_change", "jacobian_sigma_max", "jacobian_rms_gain", "hessian_lambda_max",
                             "hessian_trace", "hessian_preconditioned_lambda_max", "snr", "snr_raw", "lesion", "cka"}));
  for (std::size_t row = 0; row < rows.rows(); ++row) {
    if (names[row] == "output_change" && steps[row] == "0") {
      EXPECT_EQ(number(rows, row, "value"), 0);
    } else if (names[row] == "output_change") {
      EXPECT_GT(number(rows, row, "value"), 0);
    }
    if (names[row] == "hessian_preconditioned_lambda_max") {
      EXPECT_NE(steps[row], "0");
    }
  }
  // The run is the one that it is without them.
  const RunFiles plain = this->run(tiny(), {"layers_every=2"}, "plain");
  EXPECT_EQ(lines_of(run.file("steps.csv")), lines_of(plain.file("steps.csv")));
  EXPECT_EQ(lines_of(run.file("layers.csv")), lines_of(plain.file("layers.csv")));
  EXPECT_FALSE(plain.has("quantities.csv"));
}

TEST_F(QuantitiesOnDemand, NeedDataToMeasureOn) {
  const std::string text = write("text.txt", std::string(200, 'a') + std::string(200, 'b'));
  const Outcome outcome = run_gradflow(command(
      tiny(), {"task=text", "data.files=" + text, "data.vocabulary=256", "validation_fraction=0", "quantities=cka"}));
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("data.validation_fraction: 0 leaves no text to measure cka on"));
}

TEST_F(QuantitiesOnDemand, AreTheSameInAResumedRun) {
  const Words on_demand = {R"(quantities=["output_change","lesion","hessian"])", "layers_every=2",
                           "checkpoint.every=2"};
  const RunFiles whole = this->run(tiny(), on_demand + Words{"steps=9"}, "whole");
  // Five steps first, whose last step writes rows that the longer run has not.
  this->run(tiny(), on_demand + Words{"steps=5"}, "parts");
  const Outcome resumed = run_gradflow(command(tiny(), on_demand + Words{"steps=9"}, "parts") + Words{"--resume"});
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(lines_of(RunFiles{folder_ / "parts"}.file("quantities.csv")), lines_of(whole.file("quantities.csv")));
}

}  // namespace
}  // namespace gradflow::testing
