#include "report/findings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/comparison.h"
#include "report/cell_numbers.h"
#include "testing/made_report.h"

namespace gradflow {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using testing::made_report;
using testing::MadeRun;
using ::testing::Not;
using testing::transformer_config;
using testing::two_placements;

std::vector<std::string> sentences(const Report& report) {
  std::vector<std::string> words;
  for (const Finding& finding : findings_of(report)) words.push_back(finding.claim + finding.text);
  return words;
}

TEST(Findings, SayWhatLearnsWhatIsStuckAndWhereTheGradientVanishes) {
  const Report report = made_report(two_placements(3));
  const std::vector<Finding> findings = findings_of(report);
  ASSERT_EQ(findings.size(), 4u);
  EXPECT_EQ(findings[0].claim, "pre learns at depths 4 and 8");
  EXPECT_EQ(
      findings[0].text,
      ", in 3 of 3 seeds each: final loss 1.71 to 1.73 nats a token (entropy rate 1.200, unigram entropy 3.900).");
  EXPECT_EQ(findings[1].claim, "Lowest final loss: pre at depth 4");
  EXPECT_EQ(findings[1].text,
            ", 1.72 ± 0.025; the best of another placement is post at depth 4, 3.91 ± 0.012 (difference seed by seed "
            "2.19 ± 0.012).");
  EXPECT_EQ(findings[2].claim, "post is stuck at the unigram entropy at depths 4 and 8");
  EXPECT_TRUE(findings[2].problem);
  EXPECT_EQ(findings[3].claim, "In post the gradient vanishes towards the input.");
  // Rates −1.51, −1.52, −1.53 over seven blocks: exp(7·1.52) = 41,773 times less.
  EXPECT_EQ(findings[3].text,
            " At depth 8, step 20, ‖∂L/∂x‖ after block 1 is 2.4e-5 of that after block 8 (at step 1: 2.4e-5); rate "
            "−1.52 ± 0.025 a block.");
}

TEST(Findings, BelowThreeSeedsThereIsNoIntervalAndNoVerdict) {
  const std::vector<std::string> words = sentences(made_report(two_placements(1)));
  for (const std::string& sentence : words) EXPECT_THAT(sentence, Not(HasSubstr("±")));
  EXPECT_THAT(words, Contains(HasSubstr("1 seed each: final loss 1.71 nats")));
  EXPECT_THAT(words, Contains(HasSubstr("In post the gradient falls towards the input.")));
  EXPECT_THAT(words, Contains(HasSubstr("1 seed, so undecided")));
}

TEST(Findings, SayWhereAnAxisDecides) {
  std::vector<MadeRun> runs;
  for (const double rate : {1e-3, 1e-2})
    for (const std::int64_t depth : {4, 8})
      for (const std::int64_t seed : {1, 2, 3}) {
        MadeRun run{.config = transformer_config(depth, Placement::post, seed)};
        run.config.train.learning_rate = rate;
        run.config.train.warmup = rate == 1e-2 ? 10 : 0;  // goes with the rate
        run.loss = rate == 1e-2 && depth == 8 ? 3.9 : 1.7;
        runs.push_back(run);
        run.config.model.placement = Placement::pre;
        run.loss = 1.8;
        runs.push_back(run);
      }
  const std::vector<Finding> findings = findings_of(made_report(runs));
  EXPECT_EQ(findings[0].claim, "pre learns at depths 4 and 8");
  EXPECT_EQ(findings[1].claim, "post learns at depth 4 and at depth 8 (learning rate 0.001)");
  EXPECT_EQ(findings[3].claim, "post is stuck at the unigram entropy at depth 8 with learning rate 0.01");
  EXPECT_EQ(findings[3].choice, std::vector<std::size_t>{1});
}

TEST(Findings, RunsThatDivergedAndRunsThatStayAbove) {
  std::vector<MadeRun> runs = two_placements(3);
  for (MadeRun& run : runs) {
    if (run.config.model.placement == Placement::pre) {
      run.status = RunStatus::diverged;
      run.steps = 1 + run.config.seed;
      run.gradient_rate = 2;
    } else {
      run.loss = 200;
    }
  }
  const std::vector<std::string> words = sentences(made_report(runs));
  EXPECT_THAT(
      words,
      Contains(
          "pre diverges at depths 4 and 8, in 3 of 3 seeds each, at step 2 to 4: the gradient explodes towards the "
          "input, ‖∂L/∂x‖ after block 1 is 1.2e6 times that after block 8 at step 1."));
  EXPECT_THAT(words,
              Contains(HasSubstr(
                  "post at depths 4 and 8 has not reached the unigram entropy in 20 steps, in 3 of 3 seeds each: "
                  "loss 200 at step 1, 200 at the end (unigram entropy 3.900).")));
}

TEST(Findings, WithoutAnEntropyThereIsNoVerdictButALowestLoss) {
  std::vector<MadeRun> runs = two_placements(3);
  for (MadeRun& run : runs) run.unigram_entropy.reset();
  const std::vector<std::string> words = sentences(made_report(runs));
  ASSERT_FALSE(words.empty());
  EXPECT_THAT(words[0], HasSubstr("Lowest final loss: pre at depth 4"));
  for (const std::string& sentence : words) EXPECT_THAT(sentence, Not(HasSubstr("unigram")));
}

TEST(Findings, OfUnfinishedRunsNothingIsClaimed) {
  std::vector<MadeRun> runs = two_placements(1);
  for (MadeRun& run : runs) run.status = RunStatus::running, run.gradient_rate = 0;
  EXPECT_TRUE(findings_of(made_report(runs)).empty());
}

TEST(Findings, AtMostEight) {
  std::vector<MadeRun> runs;
  for (const Placement placement : {Placement::pre, Placement::post, Placement::deepnorm, Placement::sandwich,
                                    Placement::peri, Placement::lns, Placement::keel, Placement::admin, Placement::b2t})
    for (const std::int64_t seed : {1, 2, 3}) {
      MadeRun run{.config = transformer_config(6, placement, seed), .loss = 3.9};
      run.gradient_rate = -2;
      runs.push_back(run);
    }
  const std::vector<Finding> findings = findings_of(made_report(runs));
  EXPECT_EQ(findings.size(), 8u);
  EXPECT_THAT(findings.back().claim, HasSubstr("the gradient vanishes"));
}

TEST(Findings, TheSpikeNamesTheLayerThatMovedFirst) {
  std::vector<MadeRun> runs = two_placements(3);
  SpikeRow row{.series = SpikeSeries::loss,
               .start_step = 15,
               .peak_step = 16,
               .end_step = 16,
               .level_before = 2.2,
               .peak = 4.4,
               .score = 20};
  row.first = SpikeRow::First{14, {3, "ffn"}, LayerQuantity::update_ratio, 55.1};
  runs[1].spikes = {row};
  const std::vector<std::string> words = sentences(made_report(runs));
  EXPECT_THAT(
      words,
      Contains(
          "pre, depth 4, seed 2: the loss spiked at step 16, from 2.2 to 4.4; block 3, feed-forward moved first, its "
          "update ratio at step 14 (score 55.1, threshold 6). 1 episode in all."));
}

TEST(CellNumbers, AgreeWithTheComparisonOfTheSameRuns) {
  TemporaryFolder folder;
  const std::vector<MadeRun> runs = two_placements(3);
  for (std::size_t i = 0; i < runs.size(); ++i) make_run(folder / std::to_string(i), runs[i]);
  const Study study = make_study(find_runs(std::vector<std::string>{folder.path()}).runs);
  const Comparison comparison = compare(study);
  const Report report = make_report(study, "x");
  ASSERT_EQ(report.cells.size(), comparison.results.size());
  for (const ReportCell& cell : report.cells) {
    const std::string& path = report.records[cell.runs.front()].path;
    const auto group = std::find_if(study.groups.begin(), study.groups.end(),
                                    [&](const StudyGroup& each) { return study.runs[each.runs.front()].path == path; });
    ASSERT_NE(group, study.groups.end());
    const CellNumbers numbers = numbers_of(report, cell);
    const GroupResult& result = comparison.results[static_cast<std::size_t>(group - study.groups.begin())];
    EXPECT_NEAR(*numbers.gradient.rate.mean, *result.gradient_rate.mean, 1e-12);
    EXPECT_NEAR(std::log(*numbers.last_step_ratio), std::log(*result.gradient_ratio.mean), 1e-12);
    EXPECT_EQ(numbers.gradient.verdict, result.gradient_profile);
    EXPECT_EQ(numbers.variance.verdict, result.variance_profile);
    EXPECT_NEAR(*mean(numbers.final_losses), *result.final_loss.mean, 1e-12);
    EXPECT_NEAR(*mean(numbers.steps_per_second), *result.steps_per_second.mean, 1e-12);
  }
}

}  // namespace
}  // namespace gradflow
