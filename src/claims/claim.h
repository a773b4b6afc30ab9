#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "claims/criterion.h"
#include "claims/operators.h"
#include "claims/statistic.h"
#include "config/config.h"

namespace gradflow {

/// A statement of the literature as an experiment: what to run, which number to take of it, and what the number must
/// be.
struct Claim {
  std::string id;    ///< the file's stem
  std::string path;  ///< of the file
  std::string topic;
  std::string statement;
  std::string source;
  std::string note;      ///< what a reader should know of the setup; may be empty
  std::string conflict;  ///< what the literature disagrees about, where this is one of the positions; may be empty
  ClaimVerdict expected = ClaimVerdict::reproduced;  ///< by the literature; takes no part in the verdict
  double seconds = 0;                                ///< expected cost on one core

  /// What the runs set beside their base: key and values, for people.
  std::vector<std::pair<std::string, std::string>> axes;
  std::string base;                    ///< file of the base; empty where it is written out
  std::vector<Config> cells;           ///< the runs, checked and resolved; empty for a check
  std::optional<OperatorCheck> check;  ///< instead of runs
  std::vector<std::int64_t> seeds;     ///< one for a check that draws nothing
  std::optional<Statistic> statistic;  ///< of the runs
  Criterion criterion{Region::above(0), Region::below(0)};
  Averaging averaging = Averaging::arithmetic;
};

/// Full length, or the shorter variant that the file gives under `quick`. Criteria are the same.
enum class ClaimLength { full, quick };

/// Reads and checks a claim file, every run included; nothing is run. Throws one Error with a line for each fault,
/// "FILE:LINE: KEY: fault; remedy".
Claim load_claim(const std::string& path, ClaimLength length = ClaimLength::full);

/// The claim files of a folder, by name. Throws Error when it does not exist or holds none.
std::vector<std::string> claim_files(const std::string& folder);

/// The files that `ids` name: a claim of the folder, or a path of a file. Throws one Error for all that are neither,
/// naming the nearest.
std::vector<std::string> claim_files_named(std::span<const std::string> ids, const std::string& folder);

}  // namespace gradflow
