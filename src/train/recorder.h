#pragma once

#include <array>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analysis/spike_watch.h"
#include "config/config.h"
#include "output/table.h"
#include "train/layer_rows.h"
#include "train/observer.h"

namespace gradflow {

/// Writes the CSV files of a run folder: steps, layers, spikes, timing and, if asked for, tensors. Measures at the
/// boundaries of the stack on the steps whose layer rows are due, and keeps account of the time that it takes.
class Recorder final : public Observer, private Watcher {
 public:
  /// Writes nothing yet.
  Recorder(const Config& config, Stack& stack, at::Device device, std::string folder);

  /// Creates the files in the folder with their headers. Throws Error when one cannot be written.
  void begin() override;
  /// Syncs the files.
  void save(SavedState& state) override;
  void restore(const SavedState& state) override;
  /// Goes on in the files that are there, behind what stood in them. Throws Error when one cannot be written or has
  /// other columns.
  void reopen(const SavedState& state) override;
  Watcher* watcher_for(std::int64_t step) override;
  void gather(Readout& readout) override;
  void evaluation_starts() override;
  /// Rows of tensors.csv, whose spectral norms may take long, are owed when they keep a signal waiting.
  bool owes() const override { return !owed_tensors_.empty(); }
  void go_on() override;
  void step_done(const StepResult& result) override;
  /// Rows of the episodes that are still open; everything flushed. Call once, after the last step.
  void finish();

  /// Of the latest step.
  const StepSpikes& spikes() const { return spikes_; }
  std::int64_t spike_episodes() const { return watch_.episodes(); }
  /// Rows of spikes.csv so far for one series.
  std::int64_t spike_rows(SpikeSeries series) const { return spike_rows_[static_cast<std::size_t>(series)]; }
  /// The rows of the first and the latest step whose layer rows were written.
  const std::vector<LayerRow>& first_rows() const { return first_rows_; }
  const std::vector<LayerRow>& last_rows() const { return last_rows_; }
  double seconds() const;  ///< since the recorder was made, and in the runs before that this one goes on from
  double recording_seconds() const { return recording_seconds_; }
  /// Time that others spent measuring.
  void add_recording_seconds(double seconds) { recording_seconds_ += seconds; }

 private:
  using Clock = std::chrono::steady_clock;
  class Stopwatch;

  /// The CSV files, open.
  struct Files {
    CsvFile steps, layers, spikes, timing;
    std::optional<CsvFile> tensors;

    std::vector<CsvFile*> all();
  };
  Files opened(const SavedState* from) const;
  template <class NumberRow, class Self>
  static void numbers_of(NumberRow& row, Self& self);

  void forward_done(std::size_t segment, const Stream& input, const Stream& output, const Inside& inside,
                    const Batch& batch) override;
  void gradient_arrived(std::size_t segment, const Stream& gradient) override;
  Taps taps() const override { return details_ ? details_->taps() : Taps{}; }
  void skip_gradient_found(std::size_t segment, const at::Tensor& gradient) override;

  std::vector<Cell> step_cells(const StepResult& result) const;
  /// Whether rows of layers.csv and tensors.csv are due in a run that does not end with this step, too.
  bool layers_due_in_any_run(const StepResult& result) const;
  /// What the last step would have left in the files if it were not the last.
  void note_longer_run(const StepResult& result, const std::map<const CsvFile*, std::uint64_t>& lengths_before);
  void write_layers(std::int64_t step, const std::vector<LayerRow>& rows);
  void try_tensors(const StepResult& result);
  /// Of the last step, whose weights still stand. Throws Interrupted before it has written any.
  void write_tensors(const std::vector<ParameterNumbers>& rows);
  void write_timing(const StepResult& result);
  void write_spikes(const std::vector<SpikeRow>& rows);
  void flush_when_due();
  void flush();

  const Config& config_;
  Stack& stack_;
  StreamMeter meter_;
  std::set<std::string_view> columns_;  // measured columns of layers.csv that are filled
  std::vector<std::pair<std::size_t, MeasuredColumn>> measured_cells_;  // and where they stand
  std::size_t nonfinite_cell_ = 0;
  std::optional<DetailMeter> details_;  // where columns of the set `all` are among them
  SpikeWatch watch_;
  StepSpikes spikes_;
  std::array<std::int64_t, 2> spike_rows_{};
  std::string folder_;
  std::optional<Files> files_;                            // once the run has begun
  std::map<const CsvFile*, SavedFile> longer_run_files_;  // after the last step
  std::vector<LayerRow> first_rows_, last_rows_;
  std::vector<ParameterNumbers> owed_tensors_;  // rows of tensors.csv of the last step, without spectral norms
  bool owed_by_any_run_ = false;                // also where that step is not the last
  bool streams_due_ = false;
  std::int64_t last_step_ = 0;
  std::size_t recorded_steps_ = 0;  // by this process

  Clock::time_point start_;
  double seconds_before_ = 0;  // of the run that this one goes on from
  double recording_seconds_ = 0;
  double flushed_at_ = 0;
  double timed_at_ = 0, timed_recording_ = 0;  // of the last row of timing.csv
  std::int64_t timed_tokens_ = 0;
};

}  // namespace gradflow
