#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "claims/statistic.h"
#include "config/config.h"

namespace gradflow {

/// The number of a leaf in run `cell`.
using LeafReader = std::function<double(const Statistic& leaf, std::size_t cell)>;

/// The seeds of these configurations, each once, smallest first.
std::vector<std::int64_t> seeds_of(std::span<const Config> cells);

/// The number of a statistic for one seed: each leaf reads the one run of that seed which meets every `where`. Throws
/// Error with the reason when there is none (a logarithm of zero, no value of a key that works).
double evaluate(const Statistic& statistic, std::span<const Config> cells, std::int64_t seed, const LeafReader& read);

/// Adds what is wrong with a statistic of these runs before any of them is made: leaves that fit no run or several,
/// keys that do not vary, numbers that are not recorded.
void check_statistic(const Statistic& statistic, std::span<const Config> cells, std::string_view file, Faults& faults);

}  // namespace gradflow
