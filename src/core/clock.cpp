#include "core/clock.h"

#include <ctime>

namespace gradflow {

double seconds_on(ClockKind clock) {
  timespec now{};
  clock_gettime(clock == ClockKind::wall ? CLOCK_MONOTONIC : CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace gradflow
