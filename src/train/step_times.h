#pragma once

#include <cstdint>
#include <string>

#include "config/config.h"
#include "core/clock.h"
#include "core/phases.h"
#include "data/source.h"
#include "model/tensor.h"

namespace gradflow {

/// Seconds of one training step on the clock that was asked for, from the end of the step before to its own end: batch,
/// forward, backward, norms, update and what the recorder does, its CSV files included.
struct StepTimes {
  double recorded = 0;    ///< every layer's row is due: its statistics are measured and written
  double unrecorded = 0;  ///< no row is due
  PhaseSeconds recorded_phases{}, unrecorded_phases{};  ///< what they were spent on; zeros where nobody asked
  std::int64_t tokens = 0;                              ///< that one step trains on, padding left out
};

/// A short real run of `config` (resolved; data in `data`) in which every other step is recorded, so that both kinds
/// meet the same machine, memory and weights; its files go to the empty folder `folder`. After a few steps to warm up
/// come `steps` of each kind, of which the means are taken. Throws Error when the run stops at a value that is not
/// finite, Interrupted after a signal. Phases are looked at when asked for, on the CPU alone: on a GPU work is queued
/// in one and done in another.
StepTimes time_steps(const Config& config, const DataSource& data, at::Device device, std::int64_t steps,
                     const std::string& folder, ClockKind clock = ClockKind::wall, bool phases = false);

}  // namespace gradflow
