#pragma once

#include <cstddef>

#include "config/choices.h"

namespace gradflow {

/// Whether these kernels know it.
constexpr bool has_kernel(Activation activation) {
  return activation == Activation::gelu || activation == Activation::relu;
}

/// y = activation(x + bias) for x, y [rows, width]; `bias` null: none.
void activation_forward(Activation activation, std::size_t rows, std::size_t width, const float* x, const float* bias,
                        float* y);
/// y again, which is cheaper to compute than to keep, and in the same pass `gradient` from dL/dy to dL/dx. Adds its
/// column sums to `bias_gradient` (null: none).
void activation_backward(Activation activation, std::size_t rows, std::size_t width, const float* x, const float* bias,
                         float* y, float* gradient, float* bias_gradient);

}  // namespace gradflow
