#include "train/optimizer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "config/derived.h"
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
      direction = g;
      if (c.momentum > 0) direction = m[i] = c.momentum * m[i] + g;
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
  return c.kind == OptimizerKind::sgd ? sgd_update(constants, count, gradient, w, c.momentum > 0 ? m : nullptr)
                                      : adam_update(constants, count, gradient, w, m, v);
}

}  // namespace

Optimizer::Optimizer(const TrainConfig& train, ParameterStore& store) : train_(train), store_(store) {
  if (!stays_on_device(store.values())) return;
  decay_mask_ = at::zeros(store.values().sizes(), store.values().options());
  for (const ParameterStore::Entry& entry : store.entries())
    if (entry.decays) decay_mask_.narrow(0, entry.offset, entry.size).fill_(1);
}

Optimizer::Constants Optimizer::constants(double learning_rate, double clip_factor, std::int64_t update) const {
  const double updates = static_cast<double>(update);
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
  const Constants c = constants(learning_rate, clip_factor, updates_);
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
  const std::vector<at::Tensor*> buffers = store_.updated(moment_count(train_));
  std::vector<at::Tensor> before;
  for (const at::Tensor* buffer : buffers) before.push_back(buffer->clone());
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

void PreparedUpdate::gather(Readout& readout) {
  readout.add(squares, [this, entries = squares.size(1)](const double* numbers) {
    const auto row = [&](std::int64_t r) {
      return std::vector<double>(numbers + r * entries, numbers + (r + 1) * entries);
    };
    sums = {row(0), row(1), row(2)};
  });
}

PreparedUpdate Optimizer::prepare(double learning_rate, const at::Tensor& clip_factor) {
  const Constants c = constants(learning_rate, /*clip_factor=*/1, updates_ + 1);
  const at::Tensor &w = store_.values(), &m = store_.first_moment(), &v = store_.second_moment();
  PreparedUpdate update;
  at::Tensor g = store_.gradients() * clip_factor;
  at::Tensor decayed = w;
  if (c.weight_decay != 0) {
    if (c.kind == OptimizerKind::adamw)
      decayed = w * (1 - decay_mask_ * (c.learning_rate * c.weight_decay));
    else
      g = at::add(g, decay_mask_ * w, c.weight_decay);
  }
  if (c.kind == OptimizerKind::sgd) {
    if (c.momentum > 0) update.first_moment = g = at::add(m * c.momentum, g);
    update.values = at::sub(decayed, g, c.learning_rate);
  } else {
    update.first_moment = at::add(m * c.beta1, g, 1 - c.beta1);
    update.second_moment = at::addcmul(v * c.beta2, g, g, 1 - c.beta2);
    const at::Tensor direction =
        (update.first_moment / c.correction1) / ((update.second_moment / c.correction2).sqrt() + c.epsilon);
    update.values = at::sub(decayed, direction, c.learning_rate);
  }
  update.squares = at::stack(
      {slice_squares(store_, w), slice_squares(store_, update.values), slice_squares(store_, update.values - w)});
  return update;
}

UpdateSums Optimizer::write(PreparedUpdate& update) {
  ++updates_;
  store_.values().copy_(update.values);
  if (update.first_moment.defined()) store_.first_moment().copy_(update.first_moment);
  if (update.second_moment.defined()) store_.second_moment().copy_(update.second_moment);
  return std::move(update.sums);
}

UpdateSums Optimizer::write_if_finite(PreparedUpdate& update) {
  if (update.sums.finite()) return write(update);
  update.sums.written = false;
  return std::move(update.sums);
}

}  // namespace gradflow
