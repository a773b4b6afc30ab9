#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/study.h"
#include "output/table.h"

namespace gradflow {

// One table of many runs as one CSV: each row preceded by the run's folder and by one column for every key that
// differs.

/// One column of the table `runs`, which has a row a run.
struct RunColumn {
  std::string_view name;
  std::string_view meaning;
  Cell (*cell)(const RecordedRun&);
};
std::span<const RunColumn> run_columns();

/// What can be collected: layers, steps, spikes, timing, tensors, quantities (the files of a run folder) and runs.
std::vector<std::string_view> collectable_tables();

struct Collected {
  std::int64_t runs = 0;  ///< that have the table
  std::int64_t rows = 0;
  std::vector<LeftOut> left_out;  ///< runs whose table is missing or damaged: none of their rows is written
};

/// Hands the table over in pieces that end where lines end, in memory that does not grow with the files: first the
/// header `run`, the study's keys by their full paths (`seed` first when seeds differ), the table's own columns; then
/// the rows of the runs in their order, each file checked to its end before its first row is written. Without a
/// run that has the table nothing is written. Throws std::logic_error when there is no such table.
Collected collect(const Study& study, std::string_view table, const std::function<void(std::string_view)>& write);

}  // namespace gradflow
