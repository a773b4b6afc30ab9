#include "model/segment.h"

#include <stdexcept>
#include <utility>

namespace gradflow {
namespace {

at::Tensor leaf_of(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.detach().requires_grad_(true) : tensor;
}

at::Tensor without_graph(const at::Tensor& tensor) { return tensor.defined() ? tensor.detach() : tensor; }

}  // namespace

Stream Segment::forward_in_graph(const Stream&, const Pass&) {
  throw std::logic_error("this segment has no graph of its own; build the stack with the aten backend");
}

Stream AtenSegment::forward_in_graph(const Stream& input, const Pass& pass) {
  Pass not_kept = pass;
  not_kept.keep = false;
  return compute(input, not_kept, nullptr);
}

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
    for (at::Tensor* shown :
         {&inside->norm_input, &inside->skip, &inside->branch, &inside->logits, &inside->branch_input,
          &inside->branch_output, &inside->query, &inside->key, &inside->activation})
      *shown = without_graph(*shown);
  return output;
}

Stream AtenSegment::backward(const Stream& output_gradient) {
  const Stream input = std::exchange(input_, {}), output = std::exchange(output_, {});
  std::vector<at::Tensor> roots{output.x}, gradients{output_gradient.x};
  if (output.second.defined() && output_gradient.second.defined()) {
    roots.push_back(output.second);
    gradients.push_back(output_gradient.second);
  }
  skip_gradient_ = skip_place_.defined() ? gradient_through_skip(input, roots, gradients) : at::Tensor();
  forget_skip();
  torch::autograd::backward(roots, gradients);
  const auto gradient_of = [](const at::Tensor& leaf) { return leaf.defined() ? leaf.grad() : leaf; };
  return {gradient_of(input.x), gradient_of(input.second)};
}

at::Tensor AtenSegment::noted_skip(const at::Tensor& skip, const Pass& pass) {
  if (!pass.keep || !pass.taps.skip_gradient) return skip;
  skip_start_ = skip;
  skip_place_ = skip.view_as(skip);
  return skip_place_;
}

at::Tensor AtenSegment::gradient_through_skip(const Stream& input, const std::vector<at::Tensor>& roots,
                                              const std::vector<at::Tensor>& gradients) const {
  // Only the few operators between the sum and the skip run here; the graph stays for the whole backward.
  const auto gradient = [](const std::vector<at::Tensor>& of, const std::vector<at::Tensor>& behind,
                           const at::Tensor& with_respect_to) {
    return torch::autograd::grad(of, {with_respect_to}, behind, /*retain_graph=*/true, /*create_graph=*/false,
                                 /*allow_unused=*/true)
        .at(0);
  };
  const at::Tensor at_skip = gradient(roots, gradients, skip_place_);
  if (!at_skip.defined() || skip_start_.is_same(input.x)) return at_skip;
  return gradient({skip_start_}, {at_skip}, input.x);  // HybridNorm: the skip is a norm's output
}

}  // namespace gradflow
