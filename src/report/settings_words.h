#pragma once

#include <string>
#include <vector>

#include "report/report.h"

namespace gradflow {

/// Where in a study the cells of one group stand, in words: "at depths 6 and 12", "at depth 12 with learning rate
/// 0.01", "at depth 6 (warm-up 0), at depth 12 (all settings)". Further axes are mentioned only where they decide.
std::string settings_words(const Report& report, const std::vector<const ReportCell*>& cells);

/// " at depth 12", " at depth 12 with learning rate 0.01": one cell.
std::string cell_words(const Report& report, const ReportCell& cell);

/// "pre, depth 12, learning rate 0.01, seed 3".
std::string run_words(const Report& report, const ReportRun& run);

}  // namespace gradflow
