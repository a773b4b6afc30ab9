#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/recorded_run.h"
#include "config/kinds.h"
#include "core/statistics.h"

namespace gradflow {

// Many runs as one study: in which keys they differ, and which of them differ by the seed alone.

/// A key of the configuration that does not have the same value in all runs.
struct StudyKey {
  std::string_view key;  ///< full path: "model.placement"
  std::string label;     ///< "placement"; the full path where two keys of the study end alike
};

/// Runs that are equal in everything but the seed.
struct StudyGroup {
  std::vector<Json> values;        ///< of Study::keys, as the configuration has them
  std::vector<std::string> words;  ///< the same for people: "post", "0.001"; of data files the names, with a hash of
                                   ///< the content where two groups have the same names
  std::vector<std::size_t> runs;   ///< places in Study::runs, by seed
};

struct Study {
  std::vector<RecordedRun> runs;  ///< in the order in which they were found, each configuration and seed once
  std::vector<StudyKey> keys;     ///< in the order of the field list; without the seed
  bool seeds_differ = false;
  /// In the order of their values, the first key first: words as the schema lists them, numbers by size.
  std::vector<StudyGroup> groups;
  std::vector<LeftOut> repeated;  ///< runs of a configuration and seed that was there already

  /// Places in `runs` of those that have not come to an end.
  std::vector<std::size_t> unfinished() const;
};

/// Sorts the runs into groups. `name`, `checkpoint.*` and `compute.threads` never make a difference, data files do by
/// their content and not by their place. A key that everywhere has the value that follows from other keys (ffn_width
/// when width varies) is no key of the study. Of runs with equal configuration and seed a finished one is kept, else
/// the first.
Study make_study(std::vector<RecordedRun> runs);

/// For each group the place of its value of one key among the values of that key, in the order of Study::groups.
std::vector<std::size_t> value_ranks(const Study& study, std::size_t key);

/// A number over the runs of a group.
struct OverSeeds {
  std::int64_t seeds = 0;  ///< that have the number
  std::optional<double> mean;
  std::optional<MeanInterval> interval;  ///< Student's, 95 %; absent below three seeds
};

/// Of the numbers that are there.
OverSeeds over_seeds(std::span<const std::optional<double>> values);
/// The geometric mean and its interval, for ratios and variances: of those that are positive and finite.
OverSeeds geometric_over_seeds(std::span<const std::optional<double>> values);

}  // namespace gradflow
