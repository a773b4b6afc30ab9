#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "analysis/spikes.h"

namespace gradflow {

/// What a sub-layer is watched by.
enum class LayerQuantity { grad_norm, update_ratio };
std::string_view name_of(LayerQuantity quantity);

/// A step at which the series of one sub-layer jumped.
struct LayerFlag {
  std::int64_t step = 0;
  std::size_t row = 0;  ///< the sub-layer, in the order of layers.csv
  LayerQuantity quantity = LayerQuantity::grad_norm;
  double score = 0;
};

/// Which sub-layer moved first (README, spikes.csv). A ring holds the last `ring_steps` gradient
/// norms and update ratios of every sub-layer, which costs a copy of that many numbers a step. Only when an episode
/// opens does one detector for each series run, over the ring's logarithms from its oldest step on and from then on
/// over every step, until no episode is open.
class SpikeEvidence {
 public:
  static constexpr std::size_t ring_steps = 128;
  static constexpr std::int64_t steps_before = 10;            ///< how far before an episode's start a flag counts
  static constexpr double min_jump = 0.69314718055994530942;  ///< ln 2

  /// All that is remembered, for checkpoints.
  struct State {
    std::vector<double> ring;  ///< [ring_steps][row][quantity], a step's place is its number modulo ring_steps
    std::int64_t last_step = 0;
    std::int64_t steps = 0;                       ///< in the ring
    std::vector<SpikeDetector::State> detectors;  ///< [row][quantity]; empty unless an episode is open
    std::vector<LayerFlag> recent;                ///< the best flag of each of the last steps that has one
  };

  /// `settings` are those of the run's detectors; the layers' min_jump is ln 2 whatever it says.
  SpikeEvidence(std::size_t rows, SpikeSettings settings);

  /// The numbers of step `step` (steps follow one another) of every sub-layer, in raw units. A value that is zero or
  /// missing is 0 and is skipped; a span may be empty (a stopped step has no update). Anything not finite is a flag.
  void add(std::int64_t step, std::span<const double> grad_norm, std::span<const double> update_ratio);

  /// An episode opened at the newest step: replays the ring, unless that was done for another open episode.
  void start();
  /// No episode is open any more.
  void stop();

  /// The earliest flag since `steps_before` steps before `episode_start`; at equal steps the highest score, then the
  /// first row, then grad_norm. Must be asked at the opening and after each further step until it answers: flags older
  /// than that are forgotten.
  std::optional<LayerFlag> first_flag(std::int64_t episode_start) const;

  State state() const;
  void restore(const State& state);

 private:
  double& ring_value(std::int64_t step, std::size_t series);
  std::optional<LayerFlag> judge(std::int64_t step, std::size_t series);
  void note(const LayerFlag& flag);

  std::size_t series_;  ///< two quantities a row
  SpikeSettings settings_;
  std::vector<double> ring_;
  std::int64_t last_step_ = 0;
  std::int64_t steps_ = 0;
  std::vector<SpikeDetector> detectors_;
  std::vector<LayerFlag> recent_;
};

}  // namespace gradflow
