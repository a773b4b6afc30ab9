#include "core/phases.h"

#include <utility>

namespace gradflow {

thread_local PhaseClock* PhaseScope::active = nullptr;

PhaseClock::PhaseClock(ClockKind clock) : clock_(clock) { PhaseScope::active = this; }

PhaseClock::~PhaseClock() { PhaseScope::active = nullptr; }

PhaseSeconds PhaseClock::take() {
  change(phase_);
  return std::exchange(seconds_, {});
}

int PhaseClock::change(int phase) {
  const double now = seconds_on(clock_);
  if (phase_ >= 0) seconds_[static_cast<std::size_t>(phase_)] += now - since_;
  since_ = now;
  return std::exchange(phase_, phase);
}

}  // namespace gradflow
