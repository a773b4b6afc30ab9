#pragma once

#include <cstdint>
#include <vector>

#include "config/config.h"
#include "measure/readout.h"
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

/// An update that was computed beside the store, on a device, and waits for the decision to be written.
struct PreparedUpdate {
  at::Tensor values, first_moment, second_moment;  ///< what the store's buffers would become; undefined: stays
  at::Tensor squares;                              ///< [3, entries] float64: Σ of before, after, change
  UpdateSums sums;                                 ///< the same on the host, once they are read

  /// `squares` take part in a transfer, which fills `sums`; this must stay where it is until then.
  void gather(Readout& readout);
};

/// AdamW (decoupled decay, Loshchilov and Hutter 2019), Adam (L2 decay added to the gradient, Kingma and Ba 2015) and
/// SGD with heavy-ball momentum, on the flat store. Decay acts on matrices and embeddings only.
///   adamw:  w ← w·(1 − lr·λ);  m, v ← moments of g;  w ← w − lr·m̂/(√v̂ + ε)
///   adam:   g ← g + λ·w, then as above without decay
///   sgd:    g ← g + λ·w;  m ← μ·m + g;  w ← w − lr·m; without momentum m is g, and the store's stays zero
class Optimizer {
 public:
  Optimizer(const TrainConfig& train, ParameterStore& store);

  /// One update with the gradients in the store, each multiplied by `clip_factor`, on the CPU. One pass over the
  /// buffers. Weights that overflow are written: use `apply_if_finite` to keep them finite.
  UpdateSums apply(double learning_rate, double clip_factor);
  /// The same; but an update that would leave a weight that is not finite is taken back (`written` is false then, and
  /// the sums are those that it would have had). `grad_norm` is that of the gradients in the store, which are finite.
  UpdateSums apply_if_finite(double learning_rate, double clip_factor, double grad_norm);

  /// The way of a device, where whether to write is only known when numbers have been read: the update with every
  /// number left there, `clip_factor` [] float64 among them; nothing is written and nothing waits.
  PreparedUpdate prepare(double learning_rate, const at::Tensor& clip_factor);
  /// Writes it, once its sums are read. Waits for nothing.
  UpdateSums write(PreparedUpdate& update);
  /// Writes it unless it would leave a weight that is not finite (`written` is false then).
  UpdateSums write_if_finite(PreparedUpdate& update);

  /// Updates applied so far; Adam's bias correction counts these, not the steps.
  std::int64_t updates() const { return updates_; }
  /// Goes on after so many updates; their moments are in the store.
  void restore(std::int64_t updates) { updates_ = updates; }

 private:
  struct Constants;
  /// Of update number `update`, from 1.
  Constants constants(double learning_rate, double clip_factor, std::int64_t update) const;
  template <class T>
  UpdateSums apply_on_cpu(const Constants& c);

  TrainConfig train_;
  ParameterStore& store_;
  std::int64_t updates_ = 0;
  at::Tensor decay_mask_;  // device path only: 1 where decay acts
};

}  // namespace gradflow
