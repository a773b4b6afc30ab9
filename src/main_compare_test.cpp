// The whole program over many runs: compare and collect, on real runs and on folders of every bad kind.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "testing/made_run.h"
#include "testing/run_of_program.h"

namespace gradflow::testing {
namespace {

using namespace ::testing;

class OverRuns : public ProgramTest {
 protected:
  /// Two placements, three seeds each, without training.
  void make_study_folder() {
    for (const std::int64_t seed : {1, 2, 3}) {
      const std::string s = std::to_string(seed);
      make_run(folder_ / "study/pre" + s, {.config = transformer_config(4, Placement::pre, seed), .loss = 1.7});
      make_run(folder_ / "study/post" + s, {.config = transformer_config(4, Placement::post, seed), .loss = 3.9});
    }
  }
  std::string study() const { return folder_ / "study"; }
};

TEST_F(OverRuns, RealRunsAreComparedAndCollected) {
  const std::string config = tiny();
  for (const std::string placement : {"pre", "post"})
    for (const std::string seed : {"1", "2"})
      run(config, {"placement=" + placement, "seed=" + seed}, "study/" + placement + seed);
  const Outcome table = run_gradflow({"compare", study()});
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_THAT(table.err, IsEmpty());
  EXPECT_THAT(table.out,
              AllOf(StartsWith("placement "), HasSubstr("\npre "), HasSubstr("\npost "), HasSubstr("steps/s")));

  const Outcome collected = run_gradflow({"collect", study(), "--table", "layers"});
  EXPECT_EQ(collected.code, 0) << collected.err;
  const CsvTable layers("layers", collected.out);
  // Steps 1 and 5 of four runs: embedding, two sub-layers in each of two blocks, head, and a final norm under pre.
  EXPECT_EQ(layers.rows(), 2u * (2 * 7 + 2 * 6));
  EXPECT_EQ(layers.columns()[1], "seed");
  EXPECT_EQ(layers.columns()[2], "model.placement");
}

TEST_F(OverRuns, EveryFormatHasItsShape) {
  make_study_folder();
  EXPECT_THAT(run_gradflow({"compare", study(), "--markdown"}).out, StartsWith("| placement | verdict |"));
  const Outcome csv = run_gradflow({"compare", study(), "--csv", "--sort", "final_loss:desc"});
  const CsvTable table("csv", csv.out);
  EXPECT_THAT(column(table, "model.placement"), ElementsAre("post", "pre"));
  const auto json = nlohmann::json::parse(run_gradflow({"compare", study(), "--json"}).out);
  EXPECT_EQ(json.at("groups").size(), 2u);
  EXPECT_EQ(run_gradflow({"compare", study(), "--json", "--csv"}).code, 2);
}

TEST_F(OverRuns, ANarrowTerminalGetsSeveralTables) {
  make_study_folder();
  const Outcome outcome = run_gradflow({"compare", study()}, {.shell = "export COLUMNS=50"});
  std::istringstream text(outcome.out);
  int tables = 0;
  for (std::string line; std::getline(text, line);) tables += line.starts_with("placement") ? 1 : 0;
  EXPECT_GT(tables, 1);
}

TEST_F(OverRuns, WhatCannotBeUsedIsNamedAndLeftOut) {
  make_study_folder();
  make_run(folder_ / "study/half", {.config = transformer_config(4, Placement::pre, 4)});
  remove_file(folder_ / "study/half/summary.json");
  make_run(folder_ / "study/old", {.config = transformer_config(4, Placement::pre, 5), .version = "99.0.0"});
  make_run(folder_ / "study/twice", {.config = transformer_config(4, Placement::pre, 1)});
  make_run(folder_ / "study/stopped",
           {.config = transformer_config(4, Placement::pre, 6), .status = RunStatus::interrupted, .reason = "SIGTERM"});
  write("study/runs.csv", "index,id\n");
  const Outcome outcome = run_gradflow({"compare", study(), folder_ / "study/runs.csv"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("3 learned, 1 unfinished"));
  EXPECT_THAT(outcome.error_lines(),
              ElementsAre(HasSubstr("study/half: left out: says that it is finished, but has no summary.json"),
                          HasSubstr("study/old: left out: was written by version 99.0.0"),
                          HasSubstr("study/runs.csv: left out: is a file"),
                          HasSubstr("study/twice: left out: its configuration and seed are those of"),
                          HasSubstr("study/stopped: interrupted (SIGTERM); counted as unfinished")));
  for (const std::string& line : outcome.error_lines()) EXPECT_THAT(line, StartsWith("gradflow: warning: "));
}

TEST_F(OverRuns, NothingFoundIsAnError) {
  create_folders(folder_ / "empty");
  for (const Words& command : {Words{"compare"}, Words{"collect", "--table", "steps"}}) {
    Outcome outcome = run_gradflow(command + Words{folder_ / "empty"});
    EXPECT_EQ(outcome.code, 1);
    EXPECT_THAT(outcome.out, IsEmpty());
    EXPECT_THAT(outcome.error_lines(),
                ElementsAre("gradflow: error: " + (folder_ / "empty") +
                            ": no run folder is there; name run folders, or folders above them"));
    outcome = run_gradflow(command + Words{folder_ / "nowhere"});
    EXPECT_EQ(outcome.code, 1);
    EXPECT_THAT(outcome.error_lines(), ElementsAre(HasSubstr("nowhere: does not exist")));
  }
}

TEST_F(OverRuns, WrongCommandLinesEndWithTwo) {
  make_study_folder();
  EXPECT_EQ(run_gradflow({"compare"}).code, 2);
  EXPECT_EQ(run_gradflow({"collect", study()}).code, 2);
  const Outcome table = run_gradflow({"collect", study(), "--table", "losses"});
  EXPECT_EQ(table.code, 2);
  EXPECT_THAT(table.err, HasSubstr("layers"));
  const Outcome sort = run_gradflow({"compare", study(), "--sort", "loss"});
  EXPECT_EQ(sort.code, 2);
  EXPECT_THAT(sort.out, IsEmpty());
  EXPECT_THAT(sort.err, HasSubstr("is no column of this comparison; did you mean "));
}

TEST_F(OverRuns, CollectWritesAFileInOneStep) {
  make_study_folder();
  const Outcome outcome = run_gradflow({"collect", study(), "--table", "steps", "--out", folder_ / "steps.csv"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, IsEmpty());
  EXPECT_EQ(lines_of(folder_ / "steps.csv").size(), 1u + 6 * 20);

  // No run has this table: what stood there stays.
  const Outcome none = run_gradflow({"collect", study(), "--table", "tensors", "--out", folder_ / "steps.csv"});
  EXPECT_EQ(none.code, 1);
  EXPECT_THAT(run_gradflow({"collect", study(), "--table", "tensors"}).out, IsEmpty());
  EXPECT_THAT(none.err, AllOf(HasSubstr("study/pre1: left out: it has no tensors.csv"),
                              HasSubstr("error: --table tensors: none of 6 runs has it")));
  EXPECT_EQ(lines_of(folder_ / "steps.csv").size(), 1u + 6 * 20);
  EXPECT_FALSE(exists("steps.csv.tmp"));
  EXPECT_EQ(run_gradflow({"collect", study(), "--table", "steps", "--out", folder_ / "no/such/file"}).code, 1);
}

TEST_F(OverRuns, CollectNeedsNoMoreMemoryForMoreRows) {
  const auto peak = [&](const std::string& name, std::int64_t steps) {
    make_run(folder_ / name, {.config = transformer_config(2, Placement::pre, 1), .steps = steps});
    const Outcome outcome = run_gradflow({"collect", folder_ / name, "--table", "steps", "--out", folder_ / "out.csv"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.peak_memory;
  };
  const std::int64_t few = peak("few", 20), many = peak("many", 400'000);
  EXPECT_GT(std::filesystem::file_size(folder_ / "many/steps.csv"), 16'000'000u);
  EXPECT_LT(many - few, 8'000'000);
}

}  // namespace
}  // namespace gradflow::testing
