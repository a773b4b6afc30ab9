#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "output/table.h"

namespace gradflow {

/// A run of a sweep: a row of runs.csv.
struct RunRow {
  std::int64_t index = 0;  ///< in the grid, from 0
  std::string id;          ///< name of the run folder
  std::string status;  ///< word of `status_of_folder`, `pending` where no run was begun, `damaged` where it ended and
                       ///< its results are not whole
  std::optional<int> exit_code;
  std::string verdict;               ///< empty while there is none
  std::optional<double> final_loss;  ///< nan where the mean is not finite
  std::string path;                  ///< of the run folder

  bool done() const { return status == "finished" || status == "diverged"; }
};

std::span<const Column> runs_columns();

/// How the run in that folder stands, by its manifest and its summary.
RunRow run_row(std::int64_t index, const std::string& id, const std::string& path);

/// runs.csv beside the run folders of a sweep. Several processes may work on one grid at a time (job arrays): each of
/// them writes the rows that it knows and keeps those of the others, under a lock on runs.csv.lock.
class RunsTable {
 public:
  /// `rows` name every run of the grid; only index, id and path need to be filled in. Throws Error when a path cannot
  /// stand in the file.
  RunsTable(const std::string& folder, std::vector<RunRow> rows);

  /// Sets what this process knows of a run.
  void set(const RunRow& row);
  /// Sets every run to what its folder says.
  void read_folders();
  const std::vector<RunRow>& rows() const { return rows_; }
  /// Writes the file in one step. Rows that this process has not set are taken from the file that is there, or from the
  /// run folders where there is none or it is that of another grid. Throws Error naming the file.
  void write();

 private:
  std::string path_;
  std::vector<RunRow> rows_;
  std::vector<bool> known_;
};

}  // namespace gradflow
