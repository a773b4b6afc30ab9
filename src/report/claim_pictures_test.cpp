#include "report/claim_pictures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/claims_page.h"
#include "testing/claim_files.h"

namespace gradflow {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class ClaimPictures : public testing::ClaimFiles {
 protected:
  /// Two positions about one thing; the first is reproduced, the second refuted.
  std::vector<ClaimOutcome> two() {
    return {judged("c", position("Which is <better>", "final loss", "d"), 3.9, "x"),
            judged("d", position("Which is <better>", "first loss", "c"), 0.9, "x")};
  }
};

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST_F(ClaimPictures, ShowEverySeedTheVerdictAndTheBounds) {
  const std::vector<ClaimOutcome> outcomes = two();
  const std::vector<ClaimPicture> pictures = topic_pictures(outcomes);
  ASSERT_EQ(pictures.size(), 1u);
  EXPECT_EQ(pictures[0].file, "topic-tests.svg");
  EXPECT_EQ(count(pictures[0].svg, "r=\"2.6\""), 7u) << "three seeds of two claims, and the key";
  EXPECT_THAT(pictures[0].svg, AllOf(HasSubstr(">reproduced</text>"), HasSubstr(">refuted</text>"),
                                     HasSubstr(">2.18</text>"), HasSubstr(">0.5</text>"), Not(HasSubstr("nan"))));
}

TEST_F(ClaimPictures, OfAConflictSayWhatEachPositionMeans) {
  const std::vector<ClaimPicture> pictures = dispute_pictures(two());
  ASSERT_EQ(pictures.size(), 1u);
  EXPECT_EQ(pictures[0].file, "conflict-which-is-better.svg");
  EXPECT_THAT(pictures[0].svg, AllOf(HasSubstr("means final loss"), HasSubstr("means first loss"),
                                     HasSubstr("Which is &lt;better&gt;"), Not(HasSubstr("<better>"))));
}

TEST_F(ClaimPictures, ClaimsWithoutANumberHaveARowToo) {
  std::vector<ClaimOutcome> outcomes = two();
  outcomes[0] = {.claim = &claims_[0]};
  EXPECT_THAT(topic_pictures(outcomes)[0].svg, AllOf(HasSubstr(">no number</text>"), HasSubstr(">undecided</text>")));
}

TEST_F(ClaimPictures, StandOnThePageBesideTheirTables) {
  const std::vector<ClaimOutcome> outcomes = two();
  create_folders(out() + "/pictures");
  write_file_atomically(out() + "/pictures/topic-gone.svg", "");
  write_claims_report(outcomes, out());
  EXPECT_EQ(file_size(out() + "/pictures/topic-gone.svg"), std::nullopt);
  EXPECT_NE(file_size(out() + "/pictures/topic-tests.svg"), std::nullopt);
  const std::string page = read_file(out() + "/index.html");
  EXPECT_THAT(page, AllOf(HasSubstr("Where does the literature disagree with itself?"), HasSubstr("href=\"../c.json\""),
                          HasSubstr("href=\"numbers/d.csv\""), HasSubstr("quantity meant"), Not(HasSubstr("<script"))));
  EXPECT_EQ(count(page, "<svg"), 2u);
}

}  // namespace
}  // namespace gradflow
