#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "claims/claim.h"
#include "claims/criterion.h"
#include "config/kinds.h"

namespace gradflow {

/// What became of one run of a claim: where it stands, or why it does not.
struct ClaimRun {
  std::string folder;
  std::string failure;  ///< empty when the run is finished (or stopped at a non-finite value)
};

/// A number that was read from a run, or that a check gave: the rows of the extract from which a verdict follows.
struct ReadNumber {
  std::int64_t seed = 0;
  std::string statistic;  ///< "final_loss (statistic.of.1)", the check's name, or "result": the seed's number
  double value = 0;
  std::string run;  ///< folder; empty for a check and for a result
};

/// A claim, judged.
struct ClaimOutcome {
  const Claim* claim = nullptr;
  ClaimJudgement judgement;
  std::string failure;  ///< of a run or a check; then the verdict is `undecided`
  double seconds = 0;   ///< that its runs took, wherever they were made; that its check took
  std::vector<std::string> runs;
  std::vector<ReadNumber> numbers;
};

/// Judges a claim by its runs, one for each of its cells in their order.
ClaimOutcome judge_runs(const Claim& claim, std::span<const ClaimRun> runs);

/// Judges a claim by its check; `run` gives the number of a seed.
ClaimOutcome judge_check(const Claim& claim, const std::function<double(std::int64_t seed)>& run);

/// [{"id", "statement", "verdict", "value", …}].
Json outcomes_json(std::span<const ClaimOutcome> outcomes);
/// The verdict table for the terminal, and what follows from it.
std::string outcomes_text(std::span<const ClaimOutcome> outcomes);
/// The verdict table as Markdown: statements, sources, numbers and where they come from.
std::string outcomes_markdown(std::span<const ClaimOutcome> outcomes, const std::string& command);

/// Writes claims.md, claims.csv and numbers/ID.csv (the numbers that each verdict follows from) into the folder.
void write_outcomes(std::span<const ClaimOutcome> outcomes, const std::string& folder, const std::string& command);

}  // namespace gradflow
