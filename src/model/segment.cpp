#include "model/segment.h"

#include <utility>

namespace gradflow {
namespace {

at::Tensor leaf_of(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.detach().requires_grad_(true) : tensor;
}

at::Tensor without_graph(const at::Tensor& tensor) { return tensor.defined() ? tensor.detach() : tensor; }

}  // namespace

Stream AtenSegment::compute_with_graph(const Stream& input, const Pass& pass, Inside* inside) {
  const at::AutoGradMode grad_mode(true);
  input_ = {leaf_of(input.x), leaf_of(input.second)};
  output_ = compute(input_, pass, inside);
  return {without_graph(output_.x), without_graph(output_.second)};
}

Stream AtenSegment::forward(const Stream& input, const Pass& pass, Inside* inside) {
  Stream output;
  if (pass.keep && !pass.recompute) {
    output = compute_with_graph(input, pass, inside);
  } else {
    const at::AutoGradMode grad_mode(false);
    if (pass.keep) input_ = input;
    output = compute(input, pass, inside);
  }
  if (inside != nullptr)
    *inside = {without_graph(inside->norm_input), without_graph(inside->skip), without_graph(inside->branch),
               without_graph(inside->logits)};
  return output;
}

Stream AtenSegment::backward(const Stream& output_gradient, const Pass& pass) {
  if (pass.recompute) {
    Pass again = pass;
    again.update_statistics = false;
    const Stream input = std::exchange(input_, {});
    compute_with_graph(input, again, nullptr);
  }
  std::vector<at::Tensor> roots{output_.x}, gradients{output_gradient.x};
  if (output_.second.defined() && output_gradient.second.defined()) {
    roots.push_back(output_.second);
    gradients.push_back(output_gradient.second);
  }
  torch::autograd::backward(roots, gradients);
  const Stream input = std::exchange(input_, {});
  output_ = {};
  return {input.x.defined() ? input.x.grad() : at::Tensor(),
          input.second.defined() ? input.second.grad() : at::Tensor()};
}

}  // namespace gradflow
