#include "model/stack.h"

#include <utility>

#include "core/interrupt.h"
#include "model/feedforward_stack.h"
#include "model/mapped_tensor.h"
#include "model/memory_estimate.h"
#include "model/transformer.h"

namespace gradflow {

namespace {

Taps taps_of(Watchers watchers) {
  Taps taps;
  for (const Watcher* watcher : watchers) taps |= watcher->taps();
  return taps;
}

}  // namespace

std::vector<std::unique_ptr<Segment>> make_reference_segments(const Config& config, const ParameterStore& store) {
  switch (config.model.stack) {
    case StackKind::transformer: return make_transformer(config, store);
    case StackKind::mlp:
    case StackKind::resnet: return make_feedforward_stack(config, store);
  }
  return {};
}

Stack::Stack(const Config& config, at::Device device, const SegmentFactory& make_segments)
    : layout_(make_layout(config)),
      store_(layout_, static_cast<std::uint64_t>(config.seed),
             config.compute.dtype == Dtype::float64 ? at::kDouble : at::kFloat, device),
      segments_(make_segments(config, store_)),
      group_(config.compute.recompute ? recompute_group(config, layout_) : 1) {}

at::Tensor Stack::forward(const Pass& pass, Watchers watchers) {
  const bool recompute = pass.keep && pass.recompute;
  Pass first_pass = pass;
  first_pass.taps = taps_of(watchers);
  const std::int64_t last_group = group_of(segments_.size() - 1);
  if (recompute) group_inputs_.assign(static_cast<std::size_t>(last_group) + 1, {});
  Stream stream;
  for (std::size_t s = 0; s < segments_.size(); ++s) {
    give_up_if_overdue();
    if (recompute && starts_group(s)) {
      const std::int64_t group = group_of(s);
      stream = {kept(input_pool_, group, stream.x), kept(second_pool_, group, stream.second)};
      group_inputs_[static_cast<std::size_t>(group)] = stream;
      first_pass.keep = group == last_group;  // backward begins there
    }
    Inside inside;
    Stream next = segments_[s]->forward(stream, first_pass, watchers.empty() ? nullptr : &inside);
    for (Watcher* watcher : watchers) watcher->forward_done(s, stream, next, inside, *pass.batch);
    stream = std::move(next);
  }
  if (pass.keep) loss_ = stream.x;
  return stream.x;
}

at::Tensor Stack::kept(at::Tensor& pool, std::int64_t group, const at::Tensor& x) const {
  if (!x.defined()) return x;
  // The stream is largest where it starts; nothing enters group 0.
  if (!pool.defined() || pool.size(1) < x.numel())
    pool = mapped_zeros({group_of(segments_.size() - 1), x.numel()}, x.options());
  const at::Tensor copy = pool[group - 1].narrow(0, 0, x.numel()).view(x.sizes());
  copy.copy_(x);
  return copy;
}

void Stack::backward(const Pass& pass, double factor, Watchers watchers, GradientKeeper* keeper) {
  Stream gradient{at::full_like(loss_, factor), {}};
  Pass again = pass;
  again.taps = taps_of(watchers);
  const auto group_start = [&](std::size_t s) {
    while (!starts_group(s)) --s;
    return s;
  };
  // Segments from here on hold what backward needs.
  std::size_t kept_from = pass.recompute ? group_start(segments_.size() - 1) : 0;
  for (std::size_t s = segments_.size(); s-- > 0;) {
    give_up_if_overdue();
    if (s < kept_from) {
      kept_from = group_start(s);
      run_again(kept_from, s, again);
    }
    for (Watcher* watcher : watchers) watcher->gradient_arrived(s, gradient);
    if (keeper != nullptr) keeper->before_backward(s, *segments_[s]);
    gradient = segments_[s]->backward(gradient);
    if (keeper != nullptr) keeper->after_backward(s);
    if (!again.taps.skip_gradient) continue;
    if (const at::Tensor through_skip = segments_[s]->skip_gradient(); through_skip.defined())
      for (Watcher* watcher : watchers) watcher->skip_gradient_found(s, through_skip);
  }
  group_inputs_.clear();
  // A large pool goes back to the system until the next forward: the update and a checkpoint need memory of their own.
  constexpr std::size_t large = std::size_t{64} << 20;
  for (at::Tensor* pool : {&input_pool_, &second_pool_})
    if (pool->defined() && pool->is_cpu() && pool->nbytes() >= large) pool->reset();
}

Stream Stack::forward_in_graph(std::size_t first, std::size_t last, Stream stream, const Pass& pass) {
  for (std::size_t s = first; s < last; ++s) {
    give_up_if_overdue();
    stream = segments_[s]->forward_in_graph(stream, pass);
  }
  return stream;
}

void Stack::run_again(std::size_t first, std::size_t last, const Pass& pass) {
  Pass again = pass;
  again.update_statistics = false;
  Stream stream = std::exchange(group_inputs_[static_cast<std::size_t>(group_of(first))], {});
  for (std::size_t s = first; s <= last; ++s) {
    give_up_if_overdue();
    stream = segments_[s]->forward(stream, again, nullptr);
  }
}

}  // namespace gradflow
