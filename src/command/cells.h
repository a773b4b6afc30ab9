#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "command/memory_demand.h"
#include "config/grid.h"

namespace gradflow {

/// A run of a grid, known to be possible on this machine.
struct GridCell {
  std::size_t number = 0;  ///< in the Grid
  std::string id;          ///< name of its folder
  std::string folder;      ///< where it runs
  std::string label;       ///< what the axes give it, for people
  double cost = 0;         ///< of all its steps, in arbitrary units: to guess the time left
  MemoryDemand memory;
  std::string memory_refusal;  ///< why it does not fit into what is free; empty when it does
  std::int64_t threads = 1;
  bool flush_denormals = false;
};

struct GridCells {
  std::string folder;                ///< of all run folders
  std::string name;                  ///< of the study, first folder under results/
  std::vector<GridCell> cells;       ///< by index
  std::vector<std::string> remarks;  ///< what was left out or is hardly meant, one line each
};

struct CellOptions {
  std::string out;            ///< folder of the run folders; empty: results/NAME below the current folder
  bool skip_invalid = false;  ///< leave out cells that cannot be built instead of refusing the grid
};

/// Looks at every cell of the grid as `run` would before training. GridCells with equal resolved configurations count
/// once. Throws one Error with a line for every fault, which names a cell that has it.
///
/// The work is done in a process of its own: asking for CUDA devices sets up a driver that does not survive a fork, and
/// the workers of a sweep are forked from this process.
GridCells checked_cells(const Grid& grid, const CellOptions& options);

}  // namespace gradflow
