#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "core/statistics.h"

namespace gradflow {

/// A number over seeds.
struct SeedMean {
  std::optional<double> mean;            ///< absent when there is no value
  std::optional<MeanInterval> interval;  ///< Student's, 95 %; absent below the fewest seeds that are asked for
};

/// Mean and interval of one value a seed, the interval from `fewest` ≥ 2 values on.
SeedMean mean_over_seeds(std::span<const double> values, std::size_t fewest = 2);

/// The same of the logarithms, for ratios and variances. Absent unless every value is positive and finite: a gradient
/// that has vanished altogether has no logarithm, and a mean over the other seeds would hide it.
SeedMean geometric_mean_over_seeds(std::span<const double> values, std::size_t fewest);

}  // namespace gradflow
