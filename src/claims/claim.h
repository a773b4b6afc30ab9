#pragma once

#include <array>
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

/// Full length, or the shorter variant that the file gives under `quick`. Criteria are the same.
enum class ClaimLength { full, quick };
inline constexpr std::array<std::string_view, 2> names_of(ClaimLength) { return {"full", "quick"}; }
inline std::string_view name_of(ClaimLength length) { return names_of(length)[static_cast<std::size_t>(length)]; }

/// What the literature disagrees about, where a claim is one of the positions: papers often mean different quantities
/// by one word.
struct ClaimConflict {
  std::string about;              ///< the same in every position; empty: no conflict
  std::string quantity;           ///< what this position measures, and when
  std::vector<std::string> with;  ///< ids of the other positions
  std::int64_t line = 1;          ///< of the file
};

/// A statement of the literature as an experiment: what to run, which number to take of it, and what the number must
/// be.
struct Claim {
  std::string id;    ///< the file's stem
  std::string path;  ///< of the file
  ClaimLength length = ClaimLength::full;
  std::string checksum;  ///< of what the file and its base say, 16 hexadecimal digits
  std::string topic;
  std::string statement;
  std::string source;
  std::string note;  ///< what a reader should know of the setup; may be empty
  ClaimConflict conflict;
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

/// Reads and checks a claim file, every run included; nothing is run. Throws one Error with a line for each fault,
/// "FILE:LINE: KEY: fault; remedy".
Claim load_claim(const std::string& path, ClaimLength length = ClaimLength::full);

/// Like load_claim for all files; the faults of all of them come in one report. The positions of a conflict must name
/// one another, those that stand beside these files and are not loaded included.
std::vector<Claim> load_claims(std::span<const std::string> files, ClaimLength length);

/// The claim files of a folder, by name. Throws Error when it does not exist or holds none.
std::vector<std::string> claim_files(const std::string& folder);

/// The files that `ids` name: a claim of the folder, or a path of a file. Throws one Error for all that are neither,
/// naming the nearest.
std::vector<std::string> claim_files_named(std::span<const std::string> ids, const std::string& folder);

}  // namespace gradflow
