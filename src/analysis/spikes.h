#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace gradflow {

/// Settings of one detector (README, spikes.csv).
struct SpikeSettings {
  std::int64_t window = 64;
  std::int64_t level_window = 9;
  double threshold = 6;
  std::int64_t min_count = 16;
  double min_jump = 0.1;
  std::int64_t rearm = 32;
  std::int64_t max_gap = 5;
};

enum class EpisodeKind { spike, nonfinite, shift };
std::string_view name_of(EpisodeKind kind);

/// A run of flagged steps that are at most max_gap apart. Values are in the detector's units (ln for gradient norms).
struct Episode {
  EpisodeKind kind = EpisodeKind::spike;
  std::int64_t start_step = 0;
  std::int64_t peak_step = 0;
  std::int64_t end_step = 0;
  std::optional<double> level_before;  ///< absent when nothing had been accepted yet
  double peak = 0;
  double score = 0;  ///< infinite for a non-finite value
  bool recovered = false;
};

/// What the detector says of one value.
struct Judgement {
  bool flagged = false;
  double score = 0;       ///< of a flagged value: (value − level)/scale, infinite for a non-finite one; else 0
  bool opened = false;    ///< an episode began with this value
  bool new_peak = false;  ///< this value is the open (or just closed) episode's peak so far
  std::optional<Episode> closed;  ///< an episode that ended with this value
};

/// The robust detector (README, spikes.csv): level = median of the newest accepted values, noise = scaled median of
/// the absolute successive differences; flagged and non-finite values never enter the window; a lasting shift re-arms
/// it. Reference: src/testing/golden/spikes.py.
class SpikeDetector {
 public:
  /// All that a detector remembers, for checkpoints.
  struct State {
    std::vector<double> accepted;  ///< newest last, at most `window`
    std::vector<double> run;       ///< flagged finite values in a row
    std::optional<Episode> open;
  };

  explicit SpikeDetector(const SpikeSettings& settings) : settings_(settings) {}

  /// The value of step `step`; steps must increase. A value that shall neither count nor enter (a zero gradient norm)
  /// is simply not given, but `skip` must be called so that an open episode can end.
  Judgement add(std::int64_t step, double value);
  /// A step without a value: closes an open episode whose gap has grown too long, as `add` of an ordinary value would.
  Judgement skip(std::int64_t step);
  /// The end of the series: the open episode, if any.
  std::optional<Episode> finish(std::int64_t last_step);

  /// The open episode, or nullptr.
  const Episode* open() const { return state_.open ? &*state_.open : nullptr; }
  const State& state() const { return state_; }
  void restore(State state) { state_ = std::move(state); }

 private:
  double level();
  double noise();
  double rise_score(double value);
  void extend(Judgement& judgement, std::int64_t step, double value, EpisodeKind kind);
  void close_after_gap(Judgement& judgement, std::int64_t step);
  Episode close(bool recovered);

  SpikeSettings settings_;
  State state_;
  std::vector<double> scratch_;
};

}  // namespace gradflow
