#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "command/cells.h"
#include "core/child_process.h"
#include "core/error.h"

namespace gradflow {

/// What a worker of a sweep says of the cell it works at.
struct WorkerReport {
  enum class Kind {
    progress,
    ended,      ///< as `run` would, with `exit`
    failed,     ///< with an error: `lines`
    elsewhere,  ///< another process has the run folder: `lines` name it
  };

  Kind kind = Kind::progress;
  double share = 0;           ///< progress: of the steps, 0 to 1
  Exit exit = Exit::done;     ///< ended
  bool was_finished = false;  ///< ended: it had been done before
  std::vector<std::string> lines;
  std::string said;  ///< warnings meant for the terminal, lines

  std::string text() const;
  static WorkerReport from(std::string_view text);
};

/// The life of a worker process: receives indices of cells, runs them one by one in this process, reports, until its
/// channel is closed. Signals are remembered (`interrupted`); after one the cell at hand ends early and no other is
/// begun. Whether there is memory for a cell must have been asked before.
void work(Channel& channel, const Grid& grid, const std::vector<GridCell>& cells);

}  // namespace gradflow
