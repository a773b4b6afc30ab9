#pragma once

#include <gtest/gtest.h>

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

  TemporaryFolder folder_;
};

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

}  // namespace gradflow::testing
