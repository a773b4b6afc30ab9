#include "kernels/gelu_expansions.h"

#include <cmath>
#include <cstddef>
#include <numbers>

namespace gradflow {
namespace {

/// Taylor's coefficients: the derivative k + 1 of Φ is (−1)^k·He_k·φ, where He_k are Hermite's polynomials,
/// He_k = x·He_(k−1) − (k − 1)·He_(k−2) (Abramowitz and Stegun 1964, 26.2.31 and 22.7.14).
GeluExpansions made() {
  constexpr double step = 1.0 / gelu_centres_per_unit;
  GeluExpansions c{};
  for (std::size_t i = 0; i + 1 < gelu_centres; ++i) {
    const double x = static_cast<double>(i) * step;
    c[0][i] = static_cast<float>(std::erf(x / std::numbers::sqrt2) / 2);
    double hermite = 1, before = 0;
    double factor = step * std::exp(-x * x / 2) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;  // ±φ·stepᵏ/k!
    for (std::size_t k = 1; k < gelu_terms; ++k) {
      c[k][i] = static_cast<float>(factor * hermite);
      const double next = x * hermite - static_cast<double>(k - 1) * before;
      before = hermite;
      hermite = next;
      factor *= -step / static_cast<double>(k + 1);
    }
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
