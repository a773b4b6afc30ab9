#pragma once

#include <span>
#include <vector>

#include "analysis/spike_watch.h"

namespace gradflow {

/// All that a watch remembers as one row of numbers, for checkpoints.
std::vector<double> packed(const SpikeWatch::State& state);

/// The state of a watch over `rows` sub-layers. Throws std::range_error when the numbers are no such state.
SpikeWatch::State unpacked_spikes(std::span<const double> numbers, std::size_t rows);

}  // namespace gradflow
