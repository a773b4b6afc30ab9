#pragma once

#include "model/tensor.h"

namespace gradflow {

/// softmax(q·kᵀ/√d_h)·v for q, k, v [B, heads, T, d_h]; `causal`: position t sees positions ≤ t. `real` [B, T] (bool,
/// undefined: all): keys that are padding are seen by nobody. A row that sees nothing gives 0.
at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, bool causal, const at::Tensor& real);

}  // namespace gradflow
