#pragma once

#include "model/tensor.h"

namespace gradflow {

/// A stream's numbers by rows (tokens, or samples where there are no tokens): x [B, T, d] is B·T rows of d features,
/// anything else [B, …] is B rows.
struct RowShape {
  std::int64_t rows = 1, features = 1;
};
inline RowShape row_shape(const at::Tensor& x) {
  RowShape shape;
  const std::int64_t leading = x.dim() == 3 ? 2 : 1;
  for (std::int64_t d = 0; d < x.dim(); ++d) (d < leading ? shape.rows : shape.features) *= x.size(d);
  return shape;
}

/// [rows, features]
inline at::Tensor as_rows(const at::Tensor& x) {
  const RowShape shape = row_shape(x);
  return x.reshape({shape.rows, shape.features});
}

}  // namespace gradflow
