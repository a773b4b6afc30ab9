#include "report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "report/group_label.h"
#include "testing/made_report.h"

namespace gradflow {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::made_report;
using testing::MadeRun;
using testing::transformer_config;

std::vector<std::string> labels(const Report& report) {
  std::vector<std::string> words;
  for (const ReportGroup& group : report.groups) words.push_back(group.label);
  return words;
}

std::vector<std::string> panels(const Report& report) {
  std::vector<std::string> words;
  for (const ReportPanel& panel : report.panels) words.push_back(panel.label);
  return words;
}

std::vector<std::string> names(const std::vector<ReportAxis>& axes) {
  std::vector<std::string> words;
  for (const ReportAxis& axis : axes) words.push_back(axis.name);
  return words;
}

MadeRun run(Placement placement, std::int64_t depth, std::int64_t seed, double rate = 1e-3) {
  MadeRun made{.config = transformer_config(depth, placement, seed)};
  made.config.train.learning_rate = rate;
  return made;
}

TEST(MakeReport, PlacementIsColourDepthIsThePanelTheRestAreFurtherAxes) {
  std::vector<MadeRun> runs;
  for (const Placement placement : {Placement::post, Placement::none, Placement::pre})
    for (const std::int64_t depth : {12, 2})
      for (const double rate : {3e-3, 1e-3})
        for (const std::int64_t seed : {2, 1}) runs.push_back(run(placement, depth, seed, rate));
  const Report report = made_report(runs);
  EXPECT_THAT(labels(report), ElementsAre("pre", "post", "no norm"));  // in the order of their hues
  EXPECT_THAT(panels(report), ElementsAre("depth 2", "depth 12"));
  EXPECT_THAT(names(report.axes), ElementsAre("learning rate"));
  EXPECT_THAT(report.axes[0].values, ElementsAre("0.001", "0.003"));
  EXPECT_EQ(report.cells.size(), 12u);
  EXPECT_EQ(report.question, "which placement trains at which depth?");
  const std::size_t choice[] = {1};
  const ReportCell* cell = report.cell(1, 0, choice);
  ASSERT_NE(cell, nullptr);
  ASSERT_EQ(cell->runs.size(), 2u);
  EXPECT_EQ(report.runs[cell->runs[0]].seed, 1);
  EXPECT_EQ(report.records[cell->runs[0]].config.train.learning_rate, 3e-3);
  EXPECT_EQ(report.records[cell->runs[0]].config.model.placement, Placement::post);
}

TEST(MakeReport, AKeyThatGoesWithAnotherIsNoAxisOfItsOwn) {
  std::vector<MadeRun> runs = {run(Placement::pre, 2, 1), run(Placement::pre, 4, 1)};
  runs[0].config.train.batch = 8;
  runs[1].config.train.batch = 4;
  const Report report = made_report(runs);
  EXPECT_THAT(panels(report), ElementsAre("depth 2", "depth 4"));
  // Where no placement differs the first other key is colour, and it goes with the depth.
  EXPECT_THAT(labels(report), ElementsAre("batch size 4", "batch size 8"));
  EXPECT_THAT(report.axes, IsEmpty());
  EXPECT_EQ(report.cells.size(), 2u);
}

TEST(MakeReport, WithoutPlacementsTheFirstKeyIsColour) {
  const Report report = made_report({run(Placement::pre, 2, 1, 0.1), run(Placement::pre, 2, 1, 0.01)});
  EXPECT_THAT(labels(report), ElementsAre("learning rate 0.01", "learning rate 0.1"));
  EXPECT_THAT(panels(report), ElementsAre("depth 2"));
  EXPECT_FALSE(report.panel_axis);
  EXPECT_EQ(report.groups[0].ink.slot, 1);
}

TEST(MakeReport, OneRunAlone) {
  const Report report = made_report({run(Placement::deepnorm, 3, 7)});
  EXPECT_THAT(labels(report), ElementsAre("deepnorm"));
  EXPECT_THAT(panels(report), ElementsAre("depth 3"));
  EXPECT_EQ(report.choices().size(), 1u);
  EXPECT_EQ(report.question, "does deepnorm train?");
}

TEST(MakeReport, RowsOfASubLayerStandWhereThePicturesLookForThem) {
  const Report report = made_report({run(Placement::pre, 3, 1)});
  const ReportRun& only = report.runs.front();
  EXPECT_EQ(only.sublayers, 2u);
  EXPECT_EQ(only.rows(), 9u);
  ASSERT_THAT(only.layer_steps, ElementsAre(1, 20));
  const std::vector<double>& gradient = only.layers.at("grad_norm");
  ASSERT_EQ(gradient.size(), 18u);
  EXPECT_EQ(gradient[0], 0.5);
  EXPECT_TRUE(std::isnan(gradient[7])) << "no final norm";
  EXPECT_EQ(gradient[8], 0.5) << "head";
  EXPECT_NEAR(only.profile("grad_norm", 0)[0], std::sqrt(0.5), 1e-15) << "of both sub-layers";
  EXPECT_FALSE(report.measured("update_ratio"));
}

TEST(MakeReport, OutcomesAreVerdictsOrWhyThereIsNone) {
  std::vector<MadeRun> runs(5, run(Placement::pre, 2, 1));
  for (std::size_t i = 0; i < runs.size(); ++i) runs[i].config.seed = static_cast<std::int64_t>(i) + 1;
  runs[1].status = RunStatus::diverged;
  runs[2].status = RunStatus::interrupted;
  runs[3].unigram_entropy.reset();
  runs[4].loss = 5;
  const Report report = made_report(runs);
  std::vector<Outcome> outcomes;
  for (const ReportRun& each : report.runs) outcomes.push_back(each.outcome);
  EXPECT_THAT(outcomes,
              ElementsAre(Outcome::learned, Outcome::diverged, Outcome::unfinished, Outcome::finished, Outcome::worse));
}

TEST(MakeReport, ADamagedTableLeavesItsRunOut) {
  TemporaryFolder folder;
  make_run(folder / "good", run(Placement::pre, 2, 1));
  make_run(folder / "bad", run(Placement::pre, 2, 2));
  write_file_atomically(folder / "bad/spikes.csv", read_file(folder / "bad/spikes.csv") + "loss,spike,x\n");
  const Report report = make_report(make_study(find_runs(std::vector<std::string>{folder.path()}).runs), "x");
  EXPECT_EQ(report.runs.size(), 1u);
  ASSERT_EQ(report.left_out.size(), 1u);
  EXPECT_TRUE(report.left_out[0].path.ends_with("/bad"));
}

TEST(MakeReport, ReferenceLinesStandWhereThePanelsRunsAgree) {
  std::vector<MadeRun> runs = {run(Placement::pre, 2, 1), run(Placement::pre, 4, 1), run(Placement::post, 4, 1)};
  runs[2].unigram_entropy = 3.5;
  const Report report = made_report(runs);
  ASSERT_EQ(report.panels[0].lines.size(), 2u);
  EXPECT_EQ(report.panels[0].lines[1].name, "unigram entropy");
  EXPECT_EQ(report.panels[0].lines[1].value, 3.9);
  ASSERT_EQ(report.panels[1].lines.size(), 1u) << "they share the entropy rate alone";
}

TEST(GroupLabels, SayWhatTellsModelsApart) {
  ModelConfig pre, rezero, plain, post, rms;
  rezero.placement = plain.placement = Placement::none;
  rezero.residual = Residual::rezero;
  plain.residual = Residual::none;
  post.placement = Placement::post;
  post.residual = Residual::none;
  rms.norm = Norm::rmsnorm;
  EXPECT_THAT(group_labels(std::vector{pre, rezero, plain, post}),
              ElementsAre("pre", "rezero", "plain", "post, no skip"));
  EXPECT_THAT(group_labels(std::vector{pre, rms, rezero}), ElementsAre("pre, layernorm", "pre, rmsnorm", "rezero"));
}

TEST(LossUnit, FollowsTheTask) {
  EXPECT_EQ(loss_unit({Task::markov, Task::text}), "nats a token");
  EXPECT_EQ(loss_unit({Task::clusters}), "nats a sample");
  EXPECT_EQ(loss_unit({Task::identity}), "squared error");
  EXPECT_EQ(loss_unit({Task::identity, Task::markov}), "unit by task");
}

}  // namespace
}  // namespace gradflow
