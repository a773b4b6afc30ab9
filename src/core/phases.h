#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "core/clock.h"

namespace gradflow {

/// What a training step spends its time on.
enum class Phase {
  data,            ///< batches
  forward,         ///< of the segments
  backward,        ///< of the segments, the forward that `recompute` repeats among it
  gradient_norms,  ///< the gradients set to zero; after backward their norms and whether they are finite
  optimizer,       ///< weights, moments, and the sums that are recorded of them
  recording        ///< what observers measure and write
};
inline constexpr std::size_t phase_count = 6;
inline constexpr std::array<std::string_view, phase_count> names_of(Phase) {
  return {"data", "forward", "backward", "gradient_norms", "optimizer", "recording"};
}

/// Seconds, one for each phase.
using PhaseSeconds = std::array<double, phase_count>;

/// Adds up what the scopes of the thread that made it take, while it lives; one at a time in a thread. A scope inside
/// another takes its time out of that one.
class PhaseClock {
 public:
  explicit PhaseClock(ClockKind clock);
  ~PhaseClock();
  PhaseClock(const PhaseClock&) = delete;
  PhaseClock& operator=(const PhaseClock&) = delete;

  /// Since it was made, or taken from last.
  PhaseSeconds take();

 private:
  friend class PhaseScope;
  /// Everything until now belongs to the phase that was on; from here on `phase` is. Returns the one before.
  int change(int phase);

  ClockKind clock_;
  int phase_ = -1;  // none
  double since_ = 0;
  PhaseSeconds seconds_{};
};

/// A stretch of a step. Without a clock it costs a look at a pointer.
class PhaseScope {
 public:
  explicit PhaseScope(Phase phase) : clock_(active) {
    if (clock_ != nullptr) before_ = clock_->change(static_cast<int>(phase));
  }
  ~PhaseScope() {
    if (clock_ != nullptr) clock_->change(before_);
  }
  PhaseScope(const PhaseScope&) = delete;
  PhaseScope& operator=(const PhaseScope&) = delete;

 private:
  friend class PhaseClock;
  static thread_local PhaseClock* active;

  PhaseClock* clock_;
  int before_ = -1;
};

}  // namespace gradflow
