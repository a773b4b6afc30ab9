#include "command/memory_demand.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <vector>

#include "core/memory.h"
#include "kernels/backend.h"
#include "kernels/memory.h"
#include "model/layout.h"

namespace gradflow {
namespace {

MemoryEstimate estimate_of(const Config& config, at::Device device) {
  return memory_estimate(config, make_layout(config), chosen_backend(config, device));
}

}  // namespace

MemoryDemand memory_demand(const Config& config, at::Device device) {
  const MemoryEstimate estimate = estimate_of(config, device);
  return {estimate.program, device.is_cpu() ? estimate.total() - estimate.program : 0};
}

std::optional<std::string> memory_refusal(const Config& config, at::Device device, bool can_be_forced) {
  const auto available = available_memory();
  if (!available || !device.is_cpu()) return std::nullopt;
  const auto fault = memory_fault(config, estimate_of(config, device), *available);
  if (!fault) return std::nullopt;
  return can_be_forced ? *fault + "; --force runs it all the same" : *fault;
}

double largest_together(std::span<const double> demands, std::int64_t jobs) {
  std::vector<double> largest(std::min(demands.size(), static_cast<std::size_t>(jobs)));
  std::partial_sort_copy(demands.begin(), demands.end(), largest.begin(), largest.end(), std::greater<>());
  return std::accumulate(largest.begin(), largest.end(), 0.0);
}

std::int64_t jobs_within(std::span<const double> demands, std::int64_t jobs, std::int64_t available) {
  while (jobs > 0 && largest_together(demands, jobs) > static_cast<double>(available)) --jobs;
  return jobs;
}

}  // namespace gradflow
