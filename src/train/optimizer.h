#pragma once

#include <cstdint>
#include <vector>

#include "config/config.h"
#include "model/parameter_store.h"

namespace gradflow {

/// What one update did, one number for each parameter tensor in the order of the store's entries, added in double.
struct UpdateSums {
  std::vector<double> before_squares;  ///< Σ w² before the update
  std::vector<double> after_squares;   ///< Σ w² after it
  std::vector<double> update_squares;  ///< Σ (w_after − w_before)², as rounded in the weights' own dtype
  bool written = true;                 ///< false: it would have left a weight that is not finite, and was taken back

  /// Whether every weight is finite after it.
  bool finite() const;
};

/// AdamW (decoupled decay, Loshchilov and Hutter 2019), Adam (L2 decay added to the gradient, Kingma and Ba 2015) and
/// SGD with heavy-ball momentum, on the flat store. Decay acts on matrices and embeddings only.
///   adamw:  w ← w·(1 − lr·λ);  m, v ← moments of g;  w ← w − lr·m̂/(√v̂ + ε)
///   adam:   g ← g + λ·w, then as above without decay
///   sgd:    g ← g + λ·w;  m ← μ·m + g;  w ← w − lr·m
class Optimizer {
 public:
  Optimizer(const TrainConfig& train, ParameterStore& store);

  /// One update with the gradients in the store, each multiplied by `clip_factor`. One pass over the buffers. Weights
  /// that overflow are written: use `apply_if_finite` to keep them finite.
  UpdateSums apply(double learning_rate, double clip_factor);
  /// The same; but an update that would leave a weight that is not finite is taken back (`written` is false then, and
  /// the sums are those that it would have had). `grad_norm` is that of the gradients in the store, which are finite.
  UpdateSums apply_if_finite(double learning_rate, double clip_factor, double grad_norm);

  /// Updates applied so far; Adam's bias correction counts these, not the steps.
  std::int64_t updates() const { return updates_; }
  /// Goes on after so many updates; their moments are in the store.
  void restore(std::int64_t updates) { updates_ = updates; }

 private:
  struct Constants;
  Constants constants(double learning_rate, double clip_factor) const;
  template <class T>
  UpdateSums apply_on_cpu(const Constants& c);
  UpdateSums apply_on_device(const Constants& c);

  TrainConfig train_;
  ParameterStore& store_;
  std::int64_t updates_ = 0;
  at::Tensor decay_mask_;  // device path only: 1 where decay acts
};

}  // namespace gradflow
