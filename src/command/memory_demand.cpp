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

MemoryEstimate estimate_of(const Prepared& prepared) {
  return memory_estimate(prepared.config, make_layout(prepared.config),
                         chosen_backend(prepared.config, prepared.device));
}

}  // namespace

MemoryDemand memory_demand(const Prepared& prepared) {
  const MemoryEstimate estimate = estimate_of(prepared);
  return {estimate.program, prepared.device.is_cpu() ? estimate.total() - estimate.program : 0};
}

std::optional<std::string> memory_refusal(const Prepared& prepared, bool can_be_forced) {
  const auto available = available_memory();
  if (!available || !prepared.device.is_cpu()) return std::nullopt;
  const auto fault = memory_fault(prepared.config, estimate_of(prepared), *available);
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
