#include "testing/finite_differences.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "core/philox.h"
#include "model/stack.h"

namespace gradflow::testing {

void expect_gradients_match(const Config& config, const Batch& batch, std::int64_t pass_step) {
  if (config.compute.dtype != Dtype::float64) throw std::logic_error("finite differences need float64");
  constexpr std::uint64_t elements_each = 4;
  constexpr double step = 1e-3;
  // What rounding alone does to the difference of two losses of order one.
  constexpr double rounding = 1e-11;

  Stack stack(config, at::kCPU);
  ParameterStore& store = stack.store();
  const Pass pass{.batch = &batch, .step = pass_step, .update_statistics = false};
  stack.forward(pass);
  stack.backward(pass, 1);
  const at::Tensor gradients = store.gradients().clone();
  double* const values = store.values().data_ptr<double>();

  Pass forward_only = pass;
  forward_only.keep = false;
  const auto loss_at = [&](double& value, double where) {
    value = where;
    return stack.forward(forward_only).item<double>();
  };
  const RandomStream random(17, "finite differences");
  std::uint64_t drawn = 0;
  for (const ParameterStore::Entry& entry : store.entries()) {
    const at::Tensor gradient = gradients.narrow(0, entry.offset, entry.size);
    const double typical = gradient.square().mean().sqrt().item<double>();
    const auto size = static_cast<std::uint64_t>(entry.size);
    for (std::uint64_t k = 0; k < std::min(elements_each, size); ++k) {
      const auto i = static_cast<std::int64_t>(size <= elements_each ? k : random.below(size, drawn++));
      double& value = values[entry.offset + i];
      const double start = value;
      const double near = loss_at(value, start + step) - loss_at(value, start - step);
      const double far = loss_at(value, start + 2 * step) - loss_at(value, start - 2 * step);
      value = start;
      const double difference = (8 * near - far) / (12 * step);
      const double derivative = gradient[i].item<double>();
      EXPECT_LE(std::abs(difference - derivative), 1e-6 * std::max(std::abs(derivative), typical) + rounding)
          << entry.name << " element " << i << ": derivative " << derivative << ", difference " << difference;
    }
  }
}

}  // namespace gradflow::testing
