#pragma once

#include <string>
#include <vector>

#include "analysis/probe_profiles.h"

namespace gradflow {

/// A probe's folder, read back.
struct RecordedProbe {
  std::string path;
  std::vector<ProbeCell> cells;  ///< in the order of the file
};

/// Reads `probe.csv` of the folder; a last line that was cut off is dropped. Throws Error naming file and line where it
/// is damaged, where a word is none of its key, and where it holds no row.
RecordedProbe read_probe(const std::string& folder);

}  // namespace gradflow
