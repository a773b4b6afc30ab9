#pragma once

#include "model/tensor.h"

namespace gradflow {

/// The stream as rows (tokens, or samples where there are no tokens) by features: x [B, T, d] → [B·T, d], anything else
/// [B, …] → [B, features].
inline at::Tensor as_rows(const at::Tensor& x) {
  return x.reshape({x.dim() == 3 ? x.size(0) * x.size(1) : x.size(0), -1});
}

/// How many features a row of it has.
inline std::int64_t features_of(const at::Tensor& x) {
  std::int64_t features = 1;
  for (std::int64_t d = x.dim() == 3 ? 2 : 1; d < x.dim(); ++d) features *= x.size(d);
  return features;
}

}  // namespace gradflow
