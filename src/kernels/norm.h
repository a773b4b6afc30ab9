#pragma once

#include <cstddef>

namespace gradflow {

/// LayerNorm and RMSNorm over rows [rows, width], row-major and without gaps:
///   y = ((x − mean)·r·gain + bias)·scale, r = 1/√(mean((x − mean)²) + epsilon)
/// RMSNorm has no mean and no bias. Mean and r are kept, [rows, 2], and the norm is not: it is computed again when the
/// backward pass needs it, which is cheaper than reading it from memory.
struct NormShape {
  std::size_t rows = 0;
  std::size_t width = 0;
  bool centred = true;  ///< LayerNorm; else RMSNorm
  float epsilon = 0;
  float scale = 1;  ///< a constant behind the norm
};

/// `bias` null: none. y may be x.
void norm_forward(const NormShape& shape, const float* x, const float* gain, const float* bias, float* y,
                  float* statistics);
/// y again, from the statistics that norm_forward left.
void norm_again(const NormShape& shape, const float* x, const float* statistics, const float* gain, const float* bias,
                float* y);
/// dx ← keep·dx + dL/dx for dy = dL/dy, and adds to the gradients of gain and bias (null: none). dx may be dy; with
/// keep 0 it is not read.
void norm_backward(const NormShape& shape, const float* dy, const float* x, const float* statistics, const float* gain,
                   float keep, float* dx, float* gain_gradient, float* bias_gradient);

}  // namespace gradflow
