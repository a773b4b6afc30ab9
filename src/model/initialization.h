#pragma once

#include <cstdint>

#include "model/layout.h"
#include "model/tensor.h"

namespace gradflow {

/// Writes the initial values of one parameter into `target`, a flat float32 or float64 CPU tensor [spec.size()].
///
/// Values are drawn in double from the Philox stream keyed by the seed and the parameter's name, then rounded: the same
/// on every machine, for every thread count and LibTorch version, and whatever else the stack contains.
void initialize(const ParameterSpec& spec, std::uint64_t seed, const at::Tensor& target);

}  // namespace gradflow
