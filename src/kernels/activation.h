#pragma once

#include <cstddef>

#include "config/choices.h"

namespace gradflow {

/// Whether these kernels know it.
constexpr bool has_kernel(Activation activation) {
  return activation == Activation::gelu || activation == Activation::relu;
}

/// y = activation(x + bias) for x, y [rows, width], y with `y_step` floats from row to row; `bias` null: none.
void activation_forward(Activation activation, std::size_t rows, std::size_t width, const float* x, const float* bias,
                        float* y, std::size_t y_step);
/// y again, which is cheaper to compute than to keep, and in the same pass `gradient`, with y's step, from dL/dy to
/// dL/dx. Adds its column sums to `bias_gradient` (null: none).
void activation_backward(Activation activation, std::size_t rows, std::size_t width, const float* x, const float* bias,
                         float* y, float* gradient, std::size_t y_step, float* bias_gradient);

}  // namespace gradflow
