#include "train/optimizer.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/optimizer_update.h"
#include "measure/store_sums.h"

namespace gradflow {

struct Optimizer::Constants {
  OptimizerKind kind;
  double learning_rate, clip, beta1, beta2, correction1, correction2, epsilon, momentum, weight_decay;
};

namespace {

/// What the weights of one tensor are updated with.
struct Rates {
  double l2 = 0;    ///< decay added to the gradient, times the weight
  double kept = 1;  ///< multiplies the weight before the step
};

template <class Constants>
UpdateSquares update(const Constants& c, const Rates& rates, const double* gradient, double* w, double* m, double* v,
                     std::size_t count) {
  UpdateSquares squares;
  for (std::size_t i = 0; i < count; ++i) {
    const double before = w[i];
    const double g = gradient[i] * c.clip + rates.l2 * before;
    double direction;
    if (c.kind == OptimizerKind::sgd) {
      direction = m[i] = c.momentum * m[i] + g;
    } else {
      m[i] = c.beta1 * m[i] + (1 - c.beta1) * g;
      v[i] = c.beta2 * v[i] + (1 - c.beta2) * g * g;
      direction = (m[i] / c.correction1) / (std::sqrt(v[i] / c.correction2) + c.epsilon);
    }
    w[i] = before * rates.kept - c.learning_rate * direction;
    squares.before += before * before;
    squares.after += w[i] * w[i];
    squares.change += (w[i] - before) * (w[i] - before);
  }
  return squares;
}

template <class Constants>
UpdateSquares update(const Constants& c, const Rates& rates, const float* gradient, float* w, float* m, float* v,
                     std::size_t count) {
  const auto rounded = [](double value) { return static_cast<float>(value); };
  const UpdateConstants constants{.clip = rounded(c.clip),
                                  .l2 = rounded(rates.l2),
                                  .kept = rounded(rates.kept),
                                  .rate = rounded(c.learning_rate),
                                  .beta1 = rounded(c.beta1),
                                  .beta2 = rounded(c.beta2),
                                  .epsilon = rounded(c.epsilon),
                                  .one_less_beta1 = rounded(1 - c.beta1),
                                  .one_less_beta2 = rounded(1 - c.beta2),
                                  .correction1 = rounded(1 / c.correction1),
                                  .correction2 = rounded(1 / c.correction2),
                                  .momentum = rounded(c.momentum)};
  return c.kind == OptimizerKind::sgd ? sgd_update(constants, count, gradient, w, m)
                                      : adam_update(constants, count, gradient, w, m, v);
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

  for (std::size_t e = 0; e < entries.size(); ++e) {
    const auto at = static_cast<std::size_t>(entries[e].offset), count = static_cast<std::size_t>(entries[e].size);
    const double decay = entries[e].decays ? c.weight_decay : 0;
    const Rates rates =
        c.kind == OptimizerKind::adamw ? Rates{.kept = 1 - c.learning_rate * decay} : Rates{.l2 = decay};
    const UpdateSquares squares = update(c, rates, gradients + at, values + at, first + at, second + at, count);
    sums.before_squares[e] = squares.before;
    sums.after_squares[e] = squares.after;
    sums.update_squares[e] = squares.change;
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
