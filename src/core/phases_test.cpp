#include "core/phases.h"

#include <gtest/gtest.h>

#include <numeric>

namespace gradflow {
namespace {

double in(const PhaseSeconds& seconds, Phase phase) { return seconds[static_cast<std::size_t>(phase)]; }

/// Works until that much time of the processor has gone by.
void work(double seconds) {
  const double start = seconds_on(ClockKind::processor);
  while (seconds_on(ClockKind::processor) - start < seconds) {
  }
}

TEST(PhaseClock, AScopeInsideAnotherTakesItsTimeOutOfIt) {
  PhaseClock clock(ClockKind::processor);
  const double start = seconds_on(ClockKind::processor);
  {
    const PhaseScope forward(Phase::forward);
    work(0.002);
    {
      const PhaseScope recording(Phase::recording);
      work(0.010);
    }
    work(0.002);
  }
  work(0.005);  // belongs to nothing
  const PhaseSeconds seconds = clock.take();
  const double all = seconds_on(ClockKind::processor) - start;
  EXPECT_GE(in(seconds, Phase::forward), 0.004);
  EXPECT_GE(in(seconds, Phase::recording), 0.010);
  EXPECT_LT(in(seconds, Phase::forward), in(seconds, Phase::recording));
  EXPECT_LE(std::accumulate(seconds.begin(), seconds.end(), 0.0), all - 0.005);
  EXPECT_EQ(in(clock.take(), Phase::forward), 0);
}

TEST(PhaseClock, NobodyCountsWithoutOne) {
  {
    const PhaseScope early(Phase::forward);  // began before there was a clock
    const PhaseClock clock(ClockKind::wall);
  }
  const PhaseScope late(Phase::backward);
  PhaseClock clock(ClockKind::wall);
  EXPECT_EQ(clock.take(), PhaseSeconds{});
}

}  // namespace
}  // namespace gradflow
