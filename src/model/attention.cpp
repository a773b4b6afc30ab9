#include "model/attention.h"

#include <cmath>
#include <limits>

namespace gradflow {

at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, bool causal, const at::Tensor& real) {
  if (!real.defined()) return at::scaled_dot_product_attention(q, k, v, {}, 0.0, causal);
  // With padding the mask differs between sequences, and a row of -inf would make softmax and its gradient nan.
  const std::int64_t tokens = q.size(2);
  at::Tensor visible = real.view({real.size(0), 1, 1, tokens});
  if (causal) visible = visible & at::ones({tokens, tokens}, real.options()).tril();
  const at::Tensor sees_something = visible.any(-1, /*keepdim=*/true);
  const at::Tensor scores = at::matmul(q, k.transpose(-1, -2)) / std::sqrt(static_cast<double>(q.size(3)));
  const at::Tensor weights =
      at::softmax(scores.masked_fill(~visible & sees_something, -std::numeric_limits<double>::infinity()), -1);
  return at::matmul(weights * sees_something.to(weights.scalar_type()), v);
}

}  // namespace gradflow
