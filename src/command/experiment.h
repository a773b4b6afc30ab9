#pragma once

#include <iosfwd>
#include <string>

#include "command/prepare.h"
#include "core/error.h"
#include "train/observer.h"

namespace gradflow {

struct ExperimentOptions {
  std::string out;               ///< run folder; empty: results/NAME/ID below the current folder
  bool overwrite = false;        ///< replace the run that is there
  bool resume = false;           ///< take up an unfinished run that is there, from its newest checkpoint
  bool force = false;            ///< run even if the memory will hardly do
  bool quiet = false;            ///< only errors and warnings on the terminal
  Observer* observer = nullptr;  ///< told of every step as well, and must not act on the run
};

struct ExperimentResult {
  Exit exit = Exit::done;     ///< done, diverged or interrupted
  std::string folder;         ///< where the run stands
  bool was_finished = false;  ///< it had been done before; nothing was written
  std::string table;          ///< the end of the run for a person, lines; empty when it had been done before
};

/// One run, from its prepared configuration to a closed run folder: what `run` and every cell of a sweep do. Progress
/// and warnings go to `terminal`. A signal that core/interrupt.h catches ends it with a checkpoint and `interrupted`.
/// Throws Error (and std::bad_alloc) for what cannot be done; the folder's manifest then says `failed` and why.
ExperimentResult run_experiment(const Prepared& prepared, const ExperimentOptions& options, std::ostream& terminal);

}  // namespace gradflow
