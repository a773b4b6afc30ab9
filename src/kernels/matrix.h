#pragma once

#include <cstddef>

namespace gradflow {

/// One linear map y = x·Wᵀ over `rows` rows: W [out, in] row-major; x and y row-major with `x_step` and `y_step` floats
/// from row to row.
struct LinearShape {
  std::size_t rows = 0;
  std::size_t in = 0;
  std::size_t out = 0;
  std::size_t x_step = 0;
  std::size_t y_step = 0;
};

// The products come from the BLAS that LibTorch brings; what makes them fast here is that the caller hands over few
// enough rows for all operands to stay in the second-level cache.

/// y = x·Wᵀ.
void linear(const LinearShape& shape, const float* x, const float* weight, float* y);
/// dx = dy·W, or dx += dy·W.
void linear_input_gradient(const LinearShape& shape, const float* dy, const float* weight, float* dx, bool add);
/// dW += dyᵀ·x.
void add_weight_gradient(const LinearShape& shape, const float* dy, const float* x, float* weight_gradient);

}  // namespace gradflow
