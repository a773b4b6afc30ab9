#pragma once

#include <string>

#include "analysis/recorded_run.h"
#include "claims/statistic.h"

namespace gradflow {

/// Why a leaf could not be read from a run of this configuration, whatever comes out of it: a column that is not
/// recorded, a step without a row, a block that the stack lacks. Empty when it can.
std::string why_not_recorded(const Statistic& leaf, const Config& config);

/// Where in a run folder a number stands, in words for a table. Empty words: it does not matter.
struct NumberSource {
  std::string file;    ///< "layers.csv"
  std::string column;  ///< of a table; a key of summary.json
  std::string step;    ///< the row's
  std::string block;   ///< "1", "12", "all"
};

/// What `read_leaf` reads from a run of this configuration.
NumberSource source_of(const Statistic& leaf, const Config& config);

/// The number that a leaf reads from a finished run. Throws Error with the reason when there is none: a run that
/// stopped, an empty cell.
double read_leaf(const Statistic& leaf, const RecordedRun& run);

}  // namespace gradflow
