#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "command/cells.h"
#include "core/error.h"
#include "output/log.h"
#include "output/runs_table.h"

namespace gradflow {

struct SweepOptions {
  std::optional<std::int64_t> jobs;  ///< cells at a time, each in a worker process; absent: as many as go
  bool fail_fast = false;            ///< end with the first cell that fails
  bool strict = false;               ///< a cell that diverges has failed
  bool force = false;                ///< run even if the memory will hardly do
  bool quiet = false;                ///< only errors and warnings on the terminal
};

/// As many workers as there are cores for, with the threads that each of them uses; at most one a cell.
std::int64_t default_jobs(const std::vector<GridCell>& cells, std::int64_t cores);

/// The runs.csv of these cells; how they stand is not yet in it.
RunsTable runs_table(const GridCells& cells);

/// Runs every cell that is not finished, in order, and keeps runs.csv. Unfinished runs are resumed; a cell whose worker
/// dies is tried once more, at the end. Errors of single cells are said on the log and end nothing but the cell. After
/// one of `interrupting_signals` the workers are told, waited for, and nothing new begins. Throws Error before anything
/// runs where a cell, or so many of the largest as are asked for at a time, need more memory than is free. Call while
/// this process has a single thread.
Exit run_sweep(const Grid& grid, const GridCells& cells, const SweepOptions& options, RunsTable& table, Log& log);

}  // namespace gradflow
