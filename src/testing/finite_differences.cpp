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
  constexpr double step = 2e-4;
  // What rounding alone does to the difference of two losses of order one.
  constexpr double rounding = 2e-11;

  Stack stack(config, at::kCPU);
  ParameterStore& store = stack.store();
  const Pass pass{.batch = &batch, .step = pass_step, .update_statistics = false};
  stack.forward(pass);
  stack.backward(pass, 1);
  Pass forward_only = pass;
  forward_only.keep = false;

  const RandomStream random(17, "finite differences");
  std::uint64_t drawn = 0;
  for (const ParameterStore::Entry& entry : store.entries()) {
    at::Tensor direction = at::empty({entry.size}, at::kDouble);
    for (std::int64_t i = 0; i < entry.size; ++i) direction[i] = random.normal(drawn++);
    direction /= direction.norm();

    const at::Tensor values = store.values().narrow(0, entry.offset, entry.size);
    const at::Tensor start = values.clone();
    const auto loss_at = [&](double distance) {
      values.copy_(start + distance * direction);
      return stack.forward(forward_only).item<double>();
    };
    const double near = loss_at(step) - loss_at(-step), far = loss_at(2 * step) - loss_at(-2 * step);
    values.copy_(start);
    const double difference = (8 * near - far) / (12 * step);

    const at::Tensor gradient = store.gradients().narrow(0, entry.offset, entry.size);
    const double derivative = gradient.dot(direction).item<double>();
    const double typical = gradient.square().mean().sqrt().item<double>();
    EXPECT_LE(std::abs(difference - derivative), 1e-6 * std::max(std::abs(derivative), typical) + rounding)
        << entry.name << ": derivative " << derivative << ", difference " << difference;
  }
}

}  // namespace gradflow::testing
