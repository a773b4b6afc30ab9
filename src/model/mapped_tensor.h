#pragma once

#include "model/tensor.h"

namespace gradflow {

/// Zeros for what is large and lives long: on the CPU in a block of its own (core/mapped_memory.h), elsewhere a tensor
/// like any other.
at::Tensor mapped_zeros(at::IntArrayRef sizes, const at::TensorOptions& options);

}  // namespace gradflow
