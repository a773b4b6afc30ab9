#include "kernels/gelu_expansions.h"

#include <cmath>
#include <cstddef>
#include <numbers>

namespace gradflow {
namespace {

/// Taylor's coefficients of Φ − ½ around x for r in steps, one more than is kept. The derivative k + 1 of Φ is
/// (−1)ᵏ·He_k·φ, where He_k are Hermite's polynomials, He_k = x·He_(k−1) − (k − 1)·He_(k−2) (Abramowitz and Stegun
/// 1964, chapters 22 and 26).
std::array<double, gelu_terms + 1> taylor(double x, double step) {
  std::array<double, gelu_terms + 1> a{std::erf(x / std::numbers::sqrt2) / 2};
  double hermite = 1, before = 0;
  double factor = step * std::exp(-x * x / 2) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;  // ±φ·stepᵏ/k!
  for (std::size_t k = 1; k < a.size(); ++k) {
    const auto order = static_cast<double>(k);
    a[k] = factor * hermite;
    const double next = x * hermite - (order - 1) * before;
    before = hermite;
    hermite = next;
    factor *= -step / (order + 1);
  }
  return a;
}

GeluExpansions made() {
  constexpr double step = 1.0 / gelu_centres_per_unit;
  static_assert(gelu_terms == 6);
  GeluExpansions c{};
  for (std::size_t i = 0; i + 1 < gelu_centres; ++i) {
    std::array<double, gelu_terms + 1> a = taylor(static_cast<double>(i) * step, step);
    // What is cut off counts most in the derivative, which ends with 6·a₆·r⁵; on [−½, ½] Chebyshev's polynomial of
    // degree 5 is nearly nought: r⁵ ≈ 5/16·r³ − 5/256·r.
    const double last = 6 * a[6];
    a[4] += last * (5.0 / 16) / 4;
    a[2] -= last * (5.0 / 256) / 2;
    for (std::size_t k = 0; k < gelu_terms; ++k) c[k][i] = static_cast<float>(a[k]);
  }
  c[0].back() = 0.5f;
  return c;
}

}  // namespace

const GeluExpansions& gelu_expansions() {
  static const GeluExpansions expansions = made();
  return expansions;
}

}  // namespace gradflow
