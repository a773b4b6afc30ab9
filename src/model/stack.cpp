#include "model/stack.h"

#include <utility>

#include "model/feedforward_stack.h"
#include "model/transformer.h"

namespace gradflow {
namespace {

std::vector<std::unique_ptr<Segment>> make_segments(const Config& config, const ParameterStore& store) {
  switch (config.model.stack) {
    case StackKind::transformer: return make_transformer(config, store);
    case StackKind::mlp:
    case StackKind::resnet: return make_feedforward_stack(config, store);
  }
  return {};
}

}  // namespace

Stack::Stack(const Config& config, at::Device device)
    : layout_(make_layout(config)),
      store_(layout_, static_cast<std::uint64_t>(config.seed),
             config.compute.dtype == Dtype::float64 ? at::kDouble : at::kFloat, device),
      segments_(make_segments(config, store_)) {}

at::Tensor Stack::forward(const Pass& pass, Watchers watchers) {
  Stream stream;
  for (std::size_t s = 0; s < segments_.size(); ++s) {
    Inside inside;
    Stream next = segments_[s]->forward(stream, pass, watchers.empty() ? nullptr : &inside);
    for (Watcher* watcher : watchers) watcher->forward_done(s, stream, next, inside, *pass.batch);
    stream = std::move(next);
  }
  loss_ = stream.x;
  return loss_;
}

void Stack::backward(const Pass& pass, double factor, Watchers watchers) {
  Stream gradient{at::full_like(loss_, factor), {}};
  for (std::size_t s = segments_.size(); s-- > 0;) {
    for (Watcher* watcher : watchers) watcher->gradient_arrived(s, gradient);
    gradient = segments_[s]->backward(gradient, pass);
  }
}

}  // namespace gradflow
