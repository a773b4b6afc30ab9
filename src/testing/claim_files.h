#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <vector>

#include "claims/claim.h"
#include "claims/outcome.h"
#include "core/error.h"
#include "core/files.h"
#include "testing/made_run.h"
#include "testing/temporary_folder.h"

// Claim files and their runs for tests, without LibTorch.

namespace gradflow::testing {

inline std::string replaced(std::string text, const std::string& part, const std::string& by) {
  const std::size_t at = text.find(part);
  EXPECT_NE(at, std::string::npos) << part;
  return text.replace(at, part.size(), by);
}

/// Runs of a claim that are made without training: post-LN ends at `post`, pre-LN at 1.7.
inline std::vector<ClaimRun> made_runs(const Claim& claim, double post, const std::string& pool) {
  std::vector<ClaimRun> runs;
  for (const Config& config : claim.cells) {
    const double seed = static_cast<double>(config.seed);
    runs.push_back({pool + "/" + std::to_string(runs.size()), ""});
    make_run(
        runs.back().folder,
        {.config = config, .loss = config.model.placement == Placement::post ? post + 0.01 * seed : 1.7 + 0.02 * seed});
  }
  return runs;
}

class ClaimFiles : public ::testing::Test {
 protected:
  /// A claim that post-LN ends higher than pre-LN, on lines of its own.
  static std::string good() {
    return R"({
"statement": "Post-LN ends higher.", "source": "nobody", "topic": "tests", "expected": "reproduced", "seconds": 1,
"experiment": {"base": {"model": {"depth": 2, "width": 8, "heads": 2}, "train": {"steps": 20}},
"axes": {"model.placement": ["pre", "post"], "seed": [1, 2, 3]}},
"statistic": {"name": "difference", "of": [{"name": "final_loss", "where": {"model.placement": "post"}},
{"name": "final_loss", "where": {"model.placement": "pre"}}]},
"criterion": {"above": 0.5, "refuted": {"below": 0}},
"quick": {"axes": {"seed": [1, 2, 3], "train.steps": [10]}}
})";
  }
  Claim claim(const std::string& text, ClaimLength length = ClaimLength::full) {
    write_file_atomically(folder_ / "c.json", text);
    return load_claim(folder_ / "c.json", length);
  }
  std::vector<std::string> faults(const std::string& text) {
    try {
      claim(text);
    } catch (const Error& error) {
      std::vector<std::string> lines;
      for (const std::string& line : error.lines()) lines.push_back(replaced(line, folder_.path() + "/", ""));
      return lines;
    }
    return {};
  }

  /// good() as one position of a conflict with the claim `other`.
  static std::string position(const std::string& about, const std::string& quantity, const std::string& other) {
    return replaced(good(), "\"topic\"",
                    R"("conflict": {"about": ")" + about + R"(", "quantity": ")" + quantity + R"(", "with": [")" +
                        other + R"("]}, "topic")");
  }
  /// The claim ID of the folder, judged by runs that were made for it.
  ClaimOutcome judged(const std::string& id, const std::string& text, double post, const std::string& command) {
    write_file_atomically(folder_ / (id + ".json"), text);
    const Claim& claim = claims_.emplace_back(load_claim(folder_ / (id + ".json")));
    ClaimOutcome outcome = judge_runs(claim, made_runs(claim, post, out() + "/runs/" + id));
    outcome.command = command;
    return outcome;
  }
  /// Where verdicts and the runs behind them stand.
  std::string out() const { return folder_ / "out"; }

  TemporaryFolder folder_;
  std::deque<Claim> claims_;  // those that were judged, whose outcomes point to them
};

}  // namespace gradflow::testing
