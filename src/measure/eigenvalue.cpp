#include "measure/eigenvalue.h"

#include <cmath>
#include <limits>
#include <vector>

namespace gradflow {
namespace {

/// The largest eigenvalue of a tridiagonal matrix and the last element of its eigenvector.
struct Ritz {
  double value = 0;
  double last_element = 0;
};

Ritz largest_of_tridiagonal(const std::vector<double>& diagonal, const std::vector<double>& beside) {
  const auto n = static_cast<std::int64_t>(diagonal.size());
  const at::Tensor matrix = at::zeros({n, n}, at::kDouble);
  for (std::int64_t i = 0; i < n; ++i) {
    matrix[i][i] = diagonal[static_cast<std::size_t>(i)];
    if (i + 1 < n) matrix[i][i + 1] = matrix[i + 1][i] = beside[static_cast<std::size_t>(i)];
  }
  const auto [values, vectors] = at::linalg_eigh(matrix);
  return {values[n - 1].item<double>(), vectors[n - 1][n - 1].item<double>()};
}

}  // namespace

double largest_eigenvalue(const SymmetricMap& apply, const at::Tensor& start, double tolerance, int most_products) {
  std::vector<double> diagonal, beside;
  at::Tensor vector = start / start.norm(), before;
  Ritz ritz;
  for (int product = 0; product < most_products; ++product) {
    at::Tensor next = apply(vector);
    if (before.defined()) next = next - beside.back() * before;
    diagonal.push_back(vector.dot(next).item<double>());
    next = next - diagonal.back() * vector;
    beside.push_back(next.norm().item<double>());
    if (!std::isfinite(diagonal.back()) || !std::isfinite(beside.back()))
      return std::numeric_limits<double>::quiet_NaN();
    ritz = largest_of_tridiagonal(diagonal, beside);
    if (std::abs(beside.back() * ritz.last_element) <= tolerance * std::abs(ritz.value)) break;
    before = vector;
    vector = next / beside.back();
  }
  return ritz.value;
}

}  // namespace gradflow
