#pragma once

namespace gradflow {

/// What a duration is measured with.
enum class ClockKind {
  wall,       ///< time as it passes
  processor,  ///< time that this process spent on a processor: others that take turns with it do not count
};

/// Seconds since a moment that stays the same as long as the process lives.
double seconds_on(ClockKind clock);

}  // namespace gradflow
