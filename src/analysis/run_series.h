#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "analysis/recorded_run.h"
#include "analysis/spike_watch.h"

namespace gradflow {

// The tables of a run folder as numbers. An empty cell ("not measured") is nan, as a cell that says nan is; infinities
// are kept. All throw Error naming file and line when the table is missing or damaged, and std::logic_error for a
// column that the table does not have.

/// Columns of steps.csv or timing.csv.
struct StepSeries {
  std::vector<std::int64_t> steps;
  std::vector<std::vector<double>> columns;  ///< in the order asked for, each [step]
};
StepSeries read_steps(const RecordedRun& run, std::span<const std::string_view> columns);
StepSeries read_timing(const RecordedRun& run, std::span<const std::string_view> columns);

/// Columns of layers.csv.
struct LayerSeries {
  std::vector<std::int64_t> steps;
  std::vector<SubLayerName> rows;            ///< the sub-layers from the embedding up, the same at every step
  std::vector<std::vector<double>> columns;  ///< in the order asked for, each [step][row] in one piece

  double value(std::size_t column, std::size_t step, std::size_t row) const {
    return columns[column][step * rows.size() + row];
  }
};
/// A step at the end whose rows are not all there (the writer was killed) is dropped.
LayerSeries read_layers(const RecordedRun& run, std::span<const std::string_view> columns);

/// The rows of spikes.csv.
std::vector<SpikeRow> read_spikes(const RecordedRun& run);

/// Steps a second between the first and the last row of timing.csv; absent with fewer than two rows. Reads only the
/// beginning and the end of the file.
std::optional<double> steps_per_second(const RecordedRun& run);

}  // namespace gradflow
