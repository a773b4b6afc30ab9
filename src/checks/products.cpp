#include <cmath>
#include <string>

#include "checks/checks.h"
#include "model/initialization.h"
#include "model/layout.h"

namespace gradflow {
namespace {

/// One of the square matrices of `matrix_product`, before the factor.
at::Tensor drawn_matrix(const std::string& kind, std::int64_t width, std::uint64_t seed, const std::string& name) {
  if (kind == "orthogonal") {
    const at::Tensor matrix = at::empty({width, width}, at::kDouble);
    initialize({"check/" + name, {width, width}, {.distribution = Distribution::orthogonal, .std = 1}}, seed,
               matrix.view({-1}));
    return matrix;
  }
  const at::Tensor matrix = normals({width, width}, seed, name) / std::sqrt(static_cast<double>(width));
  return kind == "spectral" ? matrix / at::linalg_svdvals(matrix)[0] : matrix;
}

double matrix_product(const OperatorCheck& check, std::uint64_t seed) {
  const std::int64_t width = check.count("width"), layers = check.count("layers");
  const std::string& measure = check.word("measure");
  const bool needs_sigma = measure != "rms_gain" && measure != "log10_gain";
  at::Tensor product = at::eye(width, at::kDouble);
  double log_sigma = 0;  // Σ ln σ_max
  double sigma = 0;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const at::Tensor matrix =
        drawn_matrix(check.word("matrix"), width, seed, std::to_string(layer)) * check.number("factor");
    product = matrix.mm(product);
    if (!needs_sigma) continue;
    const double largest = at::linalg_svdvals(matrix)[0].item<double>();
    sigma += largest / static_cast<double>(layers);
    log_sigma += std::log(largest);
  }
  const double gain = product.norm().item<double>() / std::sqrt(static_cast<double>(width));
  if (measure == "rms_gain") return gain;
  if (measure == "log10_gain") return std::log10(gain);
  if (measure == "spectral_norm") return sigma;
  if (measure == "share_of_bound") return std::log(gain) / log_sigma;
  return (log_sigma - std::log(gain)) / std::log(10.0);
}

/// The gradient of the stream, from the output down through blocks x + s·W ReLU(x), or x + (−x). The weight comes last:
/// behind it a branch has mean 0, as in published blocks. Of s·ReLU(W x) the means would add up to one direction that
/// carries everything.
double residual_product(const OperatorCheck& check, std::uint64_t seed) {
  const std::int64_t width = check.count("width"), layers = check.count("layers");
  const bool cancelled = check.row->kind == OperatorKind::cancelled_branch;
  const double factor =
      cancelled ? 0 : check.number("factor") / std::pow(static_cast<double>(layers), check.number("exponent"));
  std::vector<at::Tensor> weights, active;  // W; where its ReLU is open
  at::Tensor x = normals({width}, seed, "input");
  for (std::int64_t layer = 0; layer < layers && !cancelled; ++layer) {
    weights.push_back(normals({width, width}, seed, std::to_string(layer)) *
                      std::sqrt(2.0 / static_cast<double>(width)));
    active.push_back(x.gt(0).to(at::kDouble));
    x = x + factor * weights.back().mv(x * active.back());
    x = x / x.norm();  // only directions matter to where a ReLU is open; norms would overflow
  }
  const at::Tensor last = normals({width}, seed, "gradient");
  at::Tensor first = last;
  for (std::int64_t layer = layers; layer-- > 0;) {
    const auto l = static_cast<std::size_t>(layer);
    first = first + (cancelled ? -first : factor * active[l] * weights[l].t().mv(first));
  }
  const double gain = (first.norm() / last.norm()).item<double>();
  if (cancelled || check.word("measure") == "gain") return gain;
  if (check.word("measure") == "log10_gain") return std::log10(gain);
  return (first.dot(last) / (first.norm() * last.norm())).item<double>();
}

}  // namespace

double product_check(const OperatorCheck& check, std::uint64_t seed) {
  return check.row->kind == OperatorKind::matrix_product ? matrix_product(check, seed) : residual_product(check, seed);
}

}  // namespace gradflow
