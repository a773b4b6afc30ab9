#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "claims/claim.h"
#include "claims/criterion.h"
#include "claims/run_statistics.h"
#include "config/kinds.h"

namespace gradflow {

/// What became of one run of a claim: where it stands, or why it does not.
struct ClaimRun {
  std::string folder;
  std::string failure;  ///< empty when the run is finished (or stopped at a non-finite value)
};

/// What a check gave for one seed.
struct CheckNumber {
  double value = 0;
  double seconds = 0;
  std::string failure;  ///< empty when there is a value
};

/// A number that was read from a run, or that a check gave: the rows of the extract from which a verdict follows.
struct ReadNumber {
  std::int64_t seed = 0;
  std::string statistic;  ///< "final_loss (statistic.of.1)", the check's name, or "result": the seed's number
  double value = 0;
  std::string run;  ///< folder; empty for a check and for a result
  NumberSource source;
};

/// A claim, judged.
struct ClaimOutcome {
  const Claim* claim = nullptr;
  ClaimJudgement judgement;
  std::string failure;  ///< of a run or a check; then the verdict is `undecided`
  double seconds = 0;   ///< that its runs took, wherever they were made; that its check took
  std::vector<std::string> runs;
  std::vector<ReadNumber> numbers;
  std::string command;  ///< that judged it

  /// The number of each seed.
  std::vector<double> results() const;
};

/// Judges a claim by its runs, one for each of its cells in their order.
ClaimOutcome judge_runs(const Claim& claim, std::span<const ClaimRun> runs);

/// Judges a claim by what its check gave, one number for each of its seeds in their order.
ClaimOutcome judge_check(const Claim& claim, std::span<const CheckNumber> numbers);

/// [{"id", "statement", "verdict", "value", …}].
Json outcomes_json(std::span<const ClaimOutcome> outcomes);
/// The verdict table for the terminal, and what follows from it.
std::string outcomes_text(std::span<const ClaimOutcome> outcomes);

/// "9 reproduced, 3 refuted, 1 undecided".
std::string count_of_verdicts(std::span<const ClaimOutcome> outcomes);
/// The number for people; "–" where there is none.
std::string value_text(const std::optional<double>& value);
/// "[low, high]"; empty where there is no interval.
std::string interval_text(const ClaimJudgement& judgement);

}  // namespace gradflow
