#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/spike_evidence.h"
#include "analysis/spikes.h"
#include "config/config.h"
#include "output/table.h"

namespace gradflow {

/// A row of layers.csv by its name: layer 0 is the embedding, 1…N the blocks, N+1 what follows.
struct SubLayerName {
  std::int64_t layer = 0;
  std::string sublayer;
};

/// The series of the whole run that are watched.
enum class SpikeSeries { loss, grad_norm };
std::string_view name_of(SpikeSeries series);

/// What the watch is told of a step, norms before clipping, in raw units. Values that do not exist are 0 (norms,
/// ratios) and are skipped; a span is empty where the step has no such numbers (no update after a non-finite value).
struct StepNumbers {
  std::int64_t step = 0;
  double loss = 0;
  double grad_norm = 0;                        ///< global
  std::span<const double> layer_grad_norm;     ///< one a sub-layer
  std::span<const double> layer_update_ratio;  ///< one a sub-layer
};

/// A finished episode: a row of spikes.csv. Peak and level in the series' raw units.
struct SpikeRow {
  SpikeSeries series = SpikeSeries::loss;
  EpisodeKind kind = EpisodeKind::spike;
  std::int64_t start_step = 0;
  std::int64_t peak_step = 0;
  std::int64_t end_step = 0;
  std::optional<double> level_before;
  double peak = 0;
  double score = 0;
  bool recovered = false;
  /// The sub-layer that moved first, if any did.
  struct First {
    std::int64_t step = 0;
    SubLayerName name;
    LayerQuantity quantity = LayerQuantity::grad_norm;
    double score = 0;
  };
  std::optional<First> first;
};

/// The row in the order of spikes_columns().
std::vector<Cell> cells(const SpikeRow& row);

/// What became of a step: the columns spike_loss and spike_grad_norm of steps.csv, and the episodes that ended with it.
struct StepSpikes {
  bool loss = false;
  bool grad_norm = false;
  std::vector<SpikeRow> ended;
};

/// Watches a run: the loss and ln of the global gradient norm, and, while one of them is in an episode, the sub-layers.
/// Never acts on the run.
class SpikeWatch {
 public:
  /// All that is remembered, for checkpoints.
  struct State {
    std::array<SpikeDetector::State, 2> detectors;
    std::array<double, 2> peaks;
    std::array<std::optional<LayerFlag>, 2> first;
    SpikeEvidence::State evidence;
    std::int64_t episodes = 0;
  };

  /// `rows` names the sub-layers in the order in which their numbers come.
  SpikeWatch(const SpikeConfig& config, std::vector<SubLayerName> rows);

  /// Judges a step; steps follow one another.
  StepSpikes add(const StepNumbers& numbers);
  /// The end of the run: the rows of the episodes that are open.
  std::vector<SpikeRow> finish(std::int64_t last_step);

  /// Episodes that have begun so far, over both series.
  std::int64_t episodes() const { return episodes_; }

  State state() const;
  void restore(const State& state);

 private:
  /// One watched series: its detector, and of its open episode the raw peak and the first flag of a sub-layer.
  struct Series {
    SpikeDetector detector;
    double peak = 0;
    std::optional<LayerFlag> first;
  };

  void follow(SpikeSeries name, const Judgement& judgement, double raw_value, StepSpikes& result);
  SpikeRow row(SpikeSeries name, const Episode& episode) const;

  std::vector<SubLayerName> rows_;
  std::array<Series, 2> series_;  // in the order of SpikeSeries
  SpikeEvidence evidence_;
  std::int64_t episodes_ = 0;
};

}  // namespace gradflow
