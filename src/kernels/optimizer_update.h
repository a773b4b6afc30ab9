#pragma once

#include <cstddef>

namespace gradflow {

/// One update of `count` weights, in float32. Every operation is rounded by itself (no fused multiply-add), so that all
/// SIMD levels give the same bits.
struct UpdateConstants {
  float clip = 1;                                ///< multiplies the gradient
  float l2 = 0;                                  ///< decay added to the gradient, times the weight
  float kept = 1;                                ///< multiplies the weight before the step (decoupled decay)
  float rate = 0;                                ///< learning rate
  float beta1 = 0, beta2 = 0, epsilon = 0;       ///< Adam
  float one_less_beta1 = 1, one_less_beta2 = 1;  ///< 1 − β, rounded once
  float correction1 = 1, correction2 = 1;        ///< 1/(1 − βᵗ), t the number of updates
  float momentum = 0;                            ///< SGD
};

/// Sums over the weights of one tensor, added in double as by `sum_of_squares`, with the same bits at all levels.
struct UpdateSquares {
  double before = 0;  ///< Σ w² before the update
  double after = 0;   ///< Σ w² after it
  double change = 0;  ///< Σ (w_after − w_before)², as rounded in float32
};

/// g ← clip·gradient + l2·w; m ← β₁·m + (1 − β₁)·g; v ← β₂·v + (1 − β₂)·g²;
/// w ← kept·w − rate·(m·correction1)/(√(v·correction2) + ε).
UpdateSquares adam_update(const UpdateConstants& constants, std::size_t count, const float* gradient, float* w,
                          float* m, float* v);
/// m ← momentum·m + clip·gradient + l2·w; w ← kept·w − rate·m. Without momentum `m` may be null.
UpdateSquares sgd_update(const UpdateConstants& constants, std::size_t count, const float* gradient, float* w,
                         float* m);

}  // namespace gradflow
