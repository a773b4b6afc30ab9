#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/config.h"
#include "model/parameter_store.h"
#include "output/safetensors.h"
#include "train/observer.h"

namespace gradflow {

/// Where the training stands between two steps, beside the store. Batches and dropout masks are functions of the step,
/// so there is no generator to be kept.
struct Position {
  std::int64_t step = 0;     ///< the last one done
  std::int64_t tokens = 0;   ///< seen so far, padding left out
  std::int64_t updates = 0;  ///< made by the optimizer
};

/// The checkpoints of a run: RUN/checkpoint/step-N.safetensors. Tensors: every parameter under its name, the
/// optimizer's moments, where it has any, as `first_moment.NAME` and `second_moment.NAME`, BatchNorm's running
/// statistics, and what the observers remember as `state.NAME` (float64). Metadata: `format`, `step`, `tokens`,
/// `updates`, `config` (JSON), `files` (JSON: how long the CSV files were), `checksum`.
class Checkpoints {
 public:
  using Warn = std::function<void(std::string_view)>;

  /// References must outlive the object. `warn` is told of what a person should know.
  Checkpoints(std::string run_folder, const Config& config, ParameterStore& store, std::vector<Observer*> observers,
              Warn warn);

  /// Brings store and observers to the newest checkpoint that is in order; those that are not are named in a warning
  /// and get the ending `.rejected`. Absent, and nothing changed, when there is none. Throws OfOtherVersion for a
  /// checkpoint or CSV file of another version, and where all that is whole has another form: nothing is changed in the
  /// folder then.
  std::optional<Position> restore();

  /// Whether one is due after this step.
  bool due(std::int64_t step) const;
  /// Saves, unless that was done for this step, and removes the oldest beyond `checkpoint.keep`. Weights that are not
  /// finite are not saved, with a warning. Throws Error naming the file; the earlier checkpoints stand then.
  void save(const Position& position);
  /// Saves also where that was done for this step: the observers have made up for what they owed then.
  void save_again(const Position& position);
  /// Saves the finite weights of a run that stopped at a non-finite value as stopped-N.safetensors, which is never
  /// resumed from: its step was begun and not made.
  void save_stopped(const Position& position);

 private:
  /// The steps of the checkpoints in the folder, newest first.
  std::vector<std::int64_t> steps() const;
  std::string path_of(std::int64_t step) const;
  void write(const std::string& path, const Position& position);
  /// What the file says, if it fits this run and the CSV files are at least as long as they were.
  std::pair<Position, SavedState> check(const SafetensorsFile& file);
  void load(const SafetensorsFile& file, const SavedState& state);

  std::string run_folder_;
  const Config& config_;
  ParameterStore& store_;
  std::vector<Observer*> observers_;
  Warn warn_;
  std::int64_t saved_step_ = 0;
};

}  // namespace gradflow
