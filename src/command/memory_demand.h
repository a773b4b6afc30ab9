#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "config/config.h"
#include "model/tensor.h"

namespace gradflow {

/// Main memory that a run on the CPU takes at its peak by the estimate, bytes.
struct MemoryDemand {
  double program = 0;  ///< the program and its libraries, which the workers of a sweep share
  double own = 0;      ///< 0 on a GPU
};
/// `config`: resolved, the vocabulary filled in; `device`: what its compute.device names.
MemoryDemand memory_demand(const Config& config, at::Device device);

/// Why the run would be killed for its memory in the middle of its work, with the way on; absent where its estimate
/// fits into what is free, and on a GPU. `can_be_forced`: the command has --force.
std::optional<std::string> memory_refusal(const Config& config, at::Device device, bool can_be_forced = true);

/// How many runs at a time, `jobs` at most, fit into `available` bytes whichever of them they are: so many of the
/// largest of `demands` (bytes) together. 0 when the largest does not fit alone.
std::int64_t jobs_within(std::span<const double> demands, std::int64_t jobs, std::int64_t available);

/// The sum of so many of the largest demands, bytes.
double largest_together(std::span<const double> demands, std::int64_t jobs);

}  // namespace gradflow
