#pragma once

#include "config/config.h"
#include "model/batch.h"

namespace gradflow::testing {

/// Expects dL/dθ of the stack's backward to agree with finite differences of its forward (five points, fourth order):
/// for every parameter the derivative along a random direction, in which each of its elements has a part, within 1e-6
/// of it or, where that is larger, of the parameter's root mean square gradient. `config` asks for float64 and smooth
/// activations. `pass_step` is the update that the pass belongs to.
void expect_gradients_match(const Config& config, const Batch& batch, std::int64_t pass_step = 1);

}  // namespace gradflow::testing
