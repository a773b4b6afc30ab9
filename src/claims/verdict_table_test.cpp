#include "claims/verdict_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "testing/claim_files.h"

namespace gradflow {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::made_runs;
using ::testing::Not;
using testing::replaced;

class VerdictTables : public testing::ClaimFiles {
 protected:
  /// What `claims run` does with what it judged.
  EarlierOutcomes write(const std::vector<ClaimOutcome>& now) {
    EarlierOutcomes earlier = earlier_outcomes(out(), now);
    write_outcomes(joined(now, earlier.outcomes), out());
    return earlier;
  }
  std::string file(const std::string& name) const { return read_file(out() + "/" + name); }
};

TEST_F(VerdictTables, LeadFromTheRowToTheClaimFileAndTheRuns) {
  write({judged("c", good(), 3.9, "gradflow claims run c")});
  EXPECT_THAT(file("claims.csv"), HasSubstr("\nc,tests,reproduced,reproduced,2.17"));
  EXPECT_THAT(file("claims.csv"), HasSubstr("," + (folder_ / "c.json") + ","));
  EXPECT_THAT(file("claims.md"), AllOf(HasSubstr("[**c**](../c.json)"), HasSubstr("[reproduced](numbers/c.csv)"),
                                       HasSubstr("made by `gradflow claims run c`")));
  EXPECT_THAT(file("numbers/c.csv"),
              HasSubstr("\n1,final_loss (statistic.of.2),1.72,runs/c/0,summary.json,final_loss,,\n"));
}

TEST_F(VerdictTables, NameColumnStepAndBlockOfEveryNumber) {
  const std::string ratio =
      replaced(replaced(good(),
                        R"({"name": "difference", "of": [{"name": "final_loss", "where": {"model.placement": "post"}},
{"name": "final_loss", "where": {"model.placement": "pre"}}]})",
                        R"({"name": "first_last_ratio", "column": "stream_grad_norm", "step": "first"})"),
               R"("model.placement": ["pre", "post"], )", "");
  write({judged("c", ratio, 3.9, "x")});
  EXPECT_THAT(file("numbers/c.csv"), HasSubstr("runs/c/0,layers.csv,stream_grad_norm,1,1; 2\n"));
}

TEST_F(VerdictTables, KeepTheRowsOfClaimsThatWereNotAskedFor) {
  const ClaimOutcome one = judged("one", good(), 3.9, "gradflow claims run --all");
  const ClaimOutcome two = judged("two", good(), 0.9, "gradflow claims run --all");
  write({one, two});
  const std::string whole = file("claims.csv"), numbers = file("numbers/one.csv"), text = file("claims.md");

  EXPECT_THAT(write({two}).dropped, IsEmpty());
  EXPECT_EQ(file("claims.csv"), whole);
  EXPECT_EQ(file("claims.md"), text);
  EXPECT_EQ(file("numbers/one.csv"), numbers);

  write({judged("two", good(), 3.8, "gradflow claims run two")});
  EXPECT_THAT(file("claims.csv"), AllOf(HasSubstr("\none,tests,reproduced"), HasSubstr("\ntwo,tests,reproduced")));
  EXPECT_THAT(file("claims.md"), HasSubstr("2 claims, made by `gradflow claims run --all` (1 of them), "
                                           "`gradflow claims run two` (1 of them)"));
}

TEST_F(VerdictTables, DropARowWhoseClaimHasChangedOrWhoseNumbersAreGone) {
  const ClaimOutcome two = judged("two", good(), 0.9, "x");
  write({judged("one", good(), 3.9, "x"), two});
  write_file_atomically(folder_ / "one.json", replaced(good(), "\"above\": 0.5", "\"above\": 5"));
  EXPECT_THAT(write({two}).dropped, ElementsAre(AllOf(HasSubstr("one: "), HasSubstr("has changed since"))));
  EXPECT_THAT(file("claims.csv"), Not(HasSubstr("\none,")));

  write({judged("one", good(), 3.9, "x"), two});
  remove_file(out() + "/numbers/one.csv");
  EXPECT_THAT(write({two}).dropped, ElementsAre(HasSubstr("one: ")));
}

TEST_F(VerdictTables, KeepTheWordsOfAReason) {
  ClaimOutcome one = judged("one", good(), 3.9, "x");
  one.judgement = {.seeds = 3, .reason = "a run failed: \"a, b\", c; d"};
  write({one});
  EXPECT_THAT(file("claims.md"), HasSubstr(one.judgement.reason));
  EXPECT_THAT(write({judged("two", good(), 3.8, "x")}).dropped, IsEmpty());
  EXPECT_THAT(file("claims.md"), HasSubstr(one.judgement.reason));
  EXPECT_EQ(read_verdicts(out() + "/claims.csv").at(0).reason, one.judgement.reason);

  one.judgement.reason = "a run failed: first\nsecond";
  write({one});
  EXPECT_EQ(read_verdicts(out() + "/claims.csv").at(0).reason, "a run failed: first second") << "a row is one line";
}

TEST_F(VerdictTables, DropARowThatHasNotANumberForEverySeed) {
  const ClaimOutcome two = judged("two", good(), 0.9, "x");
  write({judged("one", good(), 3.9, "x"), two});
  const std::string numbers = file("numbers/one.csv");
  for (const std::size_t part : {numbers.size() - 5, numbers.size() / 2, numbers.find('\n') + 1}) {
    write({judged("one", good(), 3.9, "x"), two});
    write_file_atomically(out() + "/numbers/one.csv", numbers.substr(0, part));
    EXPECT_THAT(write({two}).dropped, ElementsAre(AllOf(HasSubstr("one: numbers/one.csv has "),
                                                        HasSubstr(" results where the row has 3 seeds"))));
    EXPECT_THAT(file("claims.csv"), Not(HasSubstr("\none,")));
  }
}

TEST_F(VerdictTables, NumbersAreReplacedInOneStep) {
  const ClaimOutcome one = judged("one", good(), 3.9, "x");
  write({one});
  const std::string numbers = file("numbers/one.csv");
  create_folders(out() + "/numbers/one.csv.tmp");  // nothing can be written there
  EXPECT_THROW(write({judged("one", good(), 0.9, "x")}), Error);
  EXPECT_EQ(file("numbers/one.csv"), numbers);
}

TEST_F(VerdictTables, OfAnotherVersionAreLeftAndSaidSo) {
  create_folders(out());
  write_file_atomically(out() + "/claims.csv", "id,topic\nc,tests\n");
  EXPECT_THAT(write({judged("c", good(), 3.9, "x")}).dropped, ElementsAre(HasSubstr("claims.csv")));
  EXPECT_EQ(read_verdicts(out() + "/claims.csv").size(), 1u);
}

TEST_F(VerdictTables, QuickRowsSaySo) {
  write_file_atomically(folder_ / "c.json", good());
  const Claim& quick = claims_.emplace_back(load_claim(folder_ / "c.json", ClaimLength::quick));
  write({judge_runs(quick, made_runs(quick, 3.9, out() + "/runs/c"))});
  EXPECT_THAT(file("claims.md"), HasSubstr("[reproduced](numbers/c.csv) (quick)"));
  // Also behind a later command for another claim.
  write({judged("d", good(), 3.9, "x")});
  EXPECT_THAT(file("claims.md"), HasSubstr("[reproduced](numbers/c.csv) (quick)"));
}

TEST_F(VerdictTables, PositionsOfAConflictStandSideBySide) {
  write({judged("c", position("Which is better", "final loss", "d"), 3.9, "x"),
         judged("d", position("Which is better", "first loss", "c"), 0.9, "x")});
  const std::string text = file("claims.md");
  const std::size_t at = text.find("### Which is better");
  ASSERT_NE(at, std::string::npos);
  EXPECT_EQ(text.find("### Which is better", at + 1), std::string::npos) << "one table for both";
  EXPECT_THAT(text.substr(at),
              AllOf(HasSubstr("| Post-LN ends higher. ([c](../c.json)) | nobody | final loss | reproduced | 2.18"),
                    HasSubstr("| Post-LN ends higher. ([d](../d.json)) | nobody | first loss | refuted | -0.82")));
}

}  // namespace
}  // namespace gradflow
