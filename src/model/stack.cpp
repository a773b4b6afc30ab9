#include "model/stack.h"

#include <utility>

#include "model/transformer.h"

namespace gradflow {

Stack::Stack(const Config& config, at::Device device)
    : layout_(make_layout(config)),
      store_(layout_, static_cast<std::uint64_t>(config.seed),
             config.compute.dtype == Dtype::float64 ? at::kDouble : at::kFloat, device),
      segments_(make_transformer(config, store_)) {}

at::Tensor Stack::forward(const Pass& pass, Watcher* watcher) {
  Stream stream;
  for (std::size_t s = 0; s < segments_.size(); ++s) {
    Inside inside;
    Stream next = segments_[s]->forward(stream, pass, watcher != nullptr ? &inside : nullptr);
    if (watcher != nullptr) watcher->forward_done(s, stream, next, inside, *pass.batch);
    stream = std::move(next);
  }
  loss_ = stream.x;
  return loss_;
}

void Stack::backward(const Pass& pass, double factor, Watcher* watcher) {
  Stream gradient{at::full_like(loss_, factor), {}};
  for (std::size_t s = segments_.size(); s-- > 0;) {
    if (watcher != nullptr) watcher->gradient_arrived(s, gradient);
    gradient = segments_[s]->backward(gradient, pass);
  }
}

}  // namespace gradflow
