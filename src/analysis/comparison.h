#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/profile.h"
#include "analysis/study.h"
#include "output/table.h"

namespace gradflow {

/// What the runs of a group came to. Only finished runs enter; what a run lacks (the final loss of one that diverged,
/// stream columns that were not recorded) leaves it out of that number alone.
struct GroupResult {
  std::array<std::int64_t, all_verdicts.size()> verdicts{};  ///< in the order of all_verdicts
  std::int64_t without_verdict = 0;                          ///< finished, but the task has no unigram entropy
  std::int64_t unfinished = 0;                               ///< running, interrupted, failed, killed
  OverSeeds final_loss;
  std::int64_t loss_spikes = 0;  ///< episodes of all runs
  std::int64_t grad_norm_spikes = 0;
  /// ‖∂L/∂x‖ after the first block divided by that after the last: geometric mean, at the first and last step.
  OverSeeds gradient_ratio_first_step, gradient_ratio;
  /// Slope of ln ‖∂L/∂x‖ for each block away from the output, at the last step, and what it means over the stack.
  OverSeeds gradient_rate;
  ProfileVerdict gradient_profile = ProfileVerdict::undecided;
  /// Slope of the logarithm of the stream's variance for each block away from the input, at the last step.
  OverSeeds variance_rate;
  ProfileVerdict variance_profile = ProfileVerdict::undecided;
  OverSeeds steps_per_second;

  std::int64_t finished() const;
  std::int64_t count(Verdict verdict) const;
};

/// A study with the result of each group, in the same order.
struct Comparison {
  Study study;
  std::vector<GroupResult> results;
  std::vector<LeftOut> damaged;  ///< runs whose timing.csv cannot be read: their steps a second are left out
};
Comparison compare(Study study);

/// One column of the comparison as a file: name, meaning, cell.
struct ComparisonColumn {
  std::string_view name;
  std::string_view meaning;
  Cell (*cell)(const GroupResult&);
};
std::span<const ComparisonColumn> comparison_columns();

/// Orders groups by a column, "NAME" or "NAME:desc": a key of the study by its full path or unique ending, one of
/// comparison_columns(), or "verdict" (most runs that learned first). Empty cells come last either way. Throws Error
/// with Exit::usage naming the nearest column when there is none of that name.
void sort_groups(Comparison& comparison, std::string_view column);

}  // namespace gradflow
