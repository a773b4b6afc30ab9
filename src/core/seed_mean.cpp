#include "core/seed_mean.h"

#include <cmath>
#include <vector>

namespace gradflow {

SeedMean mean_over_seeds(std::span<const double> values, std::size_t fewest) {
  SeedMean result{.mean = mean(values)};
  if (values.size() >= fewest) result.interval = student_interval(values);
  return result;
}

SeedMean geometric_mean_over_seeds(std::span<const double> values, std::size_t fewest) {
  std::vector<double> logarithms;
  for (const double value : values) {
    if (!(value > 0) || !std::isfinite(value)) return {};
    logarithms.push_back(std::log(value));
  }
  SeedMean result = mean_over_seeds(logarithms, fewest);
  if (result.mean) result.mean = std::exp(*result.mean);
  if (result.interval)
    result.interval =
        MeanInterval{std::exp(result.interval->mean), std::exp(result.interval->low), std::exp(result.interval->high)};
  return result;
}

}  // namespace gradflow
