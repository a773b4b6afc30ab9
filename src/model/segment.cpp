#include "model/segment.h"

#include <utility>

namespace gradflow {
namespace {

at::Tensor leaf_of(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.detach().requires_grad_(true) : tensor;
}

at::Tensor without_graph(const at::Tensor& tensor) { return tensor.defined() ? tensor.detach() : tensor; }

}  // namespace

Stream AtenSegment::forward(const Stream& input, const Pass& pass, Inside* inside) {
  const at::AutoGradMode grad_mode(pass.keep);
  Stream output;
  if (pass.keep) {
    input_ = {leaf_of(input.x), leaf_of(input.second)};
    output_ = compute(input_, pass, inside);
    output = {without_graph(output_.x), without_graph(output_.second)};
  } else {
    output = compute(input, pass, inside);
  }
  if (inside != nullptr)
    *inside = {without_graph(inside->norm_input), without_graph(inside->skip), without_graph(inside->branch),
               without_graph(inside->logits)};
  return output;
}

Stream AtenSegment::backward(const Stream& output_gradient) {
  const Stream input = std::exchange(input_, {}), output = std::exchange(output_, {});
  std::vector<at::Tensor> roots{output.x}, gradients{output_gradient.x};
  if (output.second.defined() && output_gradient.second.defined()) {
    roots.push_back(output.second);
    gradients.push_back(output_gradient.second);
  }
  torch::autograd::backward(roots, gradients);
  const auto gradient_of = [](const at::Tensor& leaf) { return leaf.defined() ? leaf.grad() : leaf; };
  return {gradient_of(input.x), gradient_of(input.second)};
}

}  // namespace gradflow
