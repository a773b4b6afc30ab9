#pragma once

#include <span>
#include <string>
#include <vector>

#include "analysis/recorded_run.h"

namespace gradflow {

/// What a search found.
struct FoundRuns {
  std::vector<RecordedRun> runs;      ///< in the order of the paths that were given, below each by name
  std::vector<LeftOut> left_out;      ///< what looked like a run and cannot be used
  std::vector<std::string> probes;    ///< folders of probes, which are no runs
  std::vector<std::string> searched;  ///< the paths that were given
};

/// Reads run folders and those below. A folder that holds a file of a run folder is taken for one, but for that of a
/// probe (`probe.csv` and no manifest); other folders are only searched, those whose name begins with a dot are not.
/// Symbolic links are followed; whatever way leads to a folder, it is read once. Throws Error with a line for each path
/// that does not exist.
FoundRuns find_runs(std::span<const std::string> paths);

/// One line for people: "PATH: left out: REASON".
std::string text_of(const LeftOut& left_out);

/// Throws Error naming what was searched when no run was found.
void require_runs(const FoundRuns& found);

}  // namespace gradflow
