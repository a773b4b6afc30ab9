#include "train/optimizer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "measure/reductions.h"
#include "measure/store_sums.h"

namespace gradflow {

struct Optimizer::Constants {
  OptimizerKind kind;
  double learning_rate, clip, beta1, beta2, correction1, correction2, epsilon, momentum, weight_decay;
};

namespace {

/// Values are updated in pieces that stay in the first-level cache, so that the sums over a piece cost no memory
/// traffic.
constexpr std::size_t piece = 512;

/// The moments are updated and `direction` [count] is what the learning rate multiplies.
template <class T, class Constants>
void adam_direction(const Constants& c, const T* gradient, const T* w, T* m, T* v, std::size_t count, T decay,
                    T* direction) {
  const T clip = static_cast<T>(c.clip), beta1 = static_cast<T>(c.beta1), beta2 = static_cast<T>(c.beta2),
          rest1 = static_cast<T>(1 - c.beta1), rest2 = static_cast<T>(1 - c.beta2),
          correction1 = static_cast<T>(c.correction1), correction2 = static_cast<T>(c.correction2),
          epsilon = static_cast<T>(c.epsilon);
  for (std::size_t i = 0; i < count; ++i) {
    const T g = gradient[i] * clip + decay * w[i];
    m[i] = beta1 * m[i] + rest1 * g;
    v[i] = beta2 * v[i] + rest2 * g * g;
    direction[i] = (m[i] / correction1) / (std::sqrt(v[i] / correction2) + epsilon);
  }
}

template <class T, class Constants>
void sgd_direction(const Constants& c, const T* gradient, const T* w, T* m, std::size_t count, T decay, T* direction) {
  const T clip = static_cast<T>(c.clip), momentum = static_cast<T>(c.momentum);
  for (std::size_t i = 0; i < count; ++i) {
    m[i] = momentum * m[i] + (gradient[i] * clip + decay * w[i]);
    direction[i] = m[i];
  }
}

}  // namespace

Optimizer::Optimizer(const TrainConfig& train, ParameterStore& store) : train_(train), store_(store) {
  if (store.values().is_cpu()) return;
  decay_mask_ = at::zeros(store.values().sizes(), store.values().options());
  for (const ParameterStore::Entry& entry : store.entries())
    if (entry.decays) decay_mask_.narrow(0, entry.offset, entry.size).fill_(1);
}

Optimizer::Constants Optimizer::constants(double learning_rate, double clip_factor) const {
  const double updates = static_cast<double>(updates_);
  return {train_.optimizer,
          learning_rate,
          clip_factor,
          train_.betas.at(0),
          train_.betas.at(1),
          1 - std::pow(train_.betas.at(0), updates),
          1 - std::pow(train_.betas.at(1), updates),
          train_.epsilon,
          train_.momentum,
          train_.weight_decay};
}

UpdateSums Optimizer::apply(double learning_rate, double clip_factor) {
  ++updates_;
  const Constants c = constants(learning_rate, clip_factor);
  if (!store_.values().is_cpu()) return apply_on_device(c);
  return store_.values().scalar_type() == at::kDouble ? apply_on_cpu<double>(c) : apply_on_cpu<float>(c);
}

bool UpdateSums::finite() const {
  return std::all_of(after_squares.begin(), after_squares.end(), [](double square) { return std::isfinite(square); });
}

UpdateSums Optimizer::apply_if_finite(double learning_rate, double clip_factor, double grad_norm) {
  // Updates of ordinary size cannot overflow: only others pay for a copy of what they change. A decay that turns
  // weights around (lr·λ > 1) lets them grow without bound; an ε near the smallest float32 leaves 0/0.
  constexpr double ordinary = 1e15, ordinary_decay = 1e6, ordinary_epsilon = 1e-20;
  const bool careful = !(learning_rate < ordinary && grad_norm < ordinary && train_.epsilon > ordinary_epsilon &&
                         train_.weight_decay < ordinary_decay && learning_rate * train_.weight_decay <= 1);
  if (!careful) return apply(learning_rate, clip_factor);
  const std::array buffers{&store_.values(), &store_.first_moment(), &store_.second_moment()};
  std::array<at::Tensor, buffers.size()> before;
  for (std::size_t b = 0; b < buffers.size(); ++b) before[b] = buffers[b]->clone();
  UpdateSums sums = apply(learning_rate, clip_factor);
  if (sums.finite()) return sums;
  for (std::size_t b = 0; b < buffers.size(); ++b) buffers[b]->copy_(before[b]);
  --updates_;
  sums.written = false;
  return sums;
}

template <class T>
UpdateSums Optimizer::apply_on_cpu(const Constants& c) {
  T* const values = store_.values().data_ptr<T>();
  const T* const gradients = store_.gradients().data_ptr<T>();
  T* const first = store_.first_moment().data_ptr<T>();
  T* const second = store_.second_moment().data_ptr<T>();
  const std::vector<ParameterStore::Entry>& entries = store_.entries();
  UpdateSums sums{std::vector<double>(entries.size()), std::vector<double>(entries.size()),
                  std::vector<double>(entries.size())};
  const T rate = static_cast<T>(c.learning_rate);
  T direction[piece], change[piece];

  for (std::size_t e = 0; e < entries.size(); ++e) {
    const auto begin = static_cast<std::size_t>(entries[e].offset), size = static_cast<std::size_t>(entries[e].size);
    const double weight_decay = entries[e].decays ? c.weight_decay : 0;
    const T l2 = static_cast<T>(c.kind == OptimizerKind::adamw ? 0 : weight_decay);
    const T kept = static_cast<T>(c.kind == OptimizerKind::adamw ? 1 - c.learning_rate * weight_decay : 1);
    for (std::size_t done = 0; done < size; done += piece) {
      const std::size_t count = std::min(piece, size - done), at = begin + done;
      T* const w = values + at;
      if (c.kind == OptimizerKind::sgd)
        sgd_direction<T>(c, gradients + at, w, first + at, count, l2, direction);
      else
        adam_direction<T>(c, gradients + at, w, first + at, second + at, count, l2, direction);
      sums.before_squares[e] += sum_of_squares(w, count);
      for (std::size_t i = 0; i < count; ++i) {
        const T after = w[i] * kept - rate * direction[i];
        change[i] = after - w[i];
        w[i] = after;
      }
      sums.after_squares[e] += sum_of_squares(w, count);
      sums.update_squares[e] += sum_of_squares(change, count);
    }
  }
  return sums;
}

UpdateSums Optimizer::apply_on_device(const Constants& c) {
  at::Tensor& w = store_.values();
  at::Tensor& m = store_.first_moment();
  at::Tensor& v = store_.second_moment();
  UpdateSums sums;
  sums.before_squares = entry_squares(store_, w);
  const at::Tensor before = w.clone();
  at::Tensor g = store_.gradients() * c.clip;
  if (c.weight_decay != 0) {
    if (c.kind == OptimizerKind::adamw)
      w.mul_(1 - decay_mask_ * (c.learning_rate * c.weight_decay));
    else
      g.add_(decay_mask_ * before, c.weight_decay);
  }
  if (c.kind == OptimizerKind::sgd) {
    m.mul_(c.momentum).add_(g);
    w.sub_(m, c.learning_rate);
  } else {
    m.mul_(c.beta1).add_(g, 1 - c.beta1);
    v.mul_(c.beta2).addcmul_(g, g, 1 - c.beta2);
    w.sub_((m / c.correction1) / ((v / c.correction2).sqrt() + c.epsilon), c.learning_rate);
  }
  sums.after_squares = entry_squares(store_, w);
  sums.update_squares = entry_squares(store_, w - before);
  return sums;
}

}  // namespace gradflow
