#include "checks/checks.h"

#include "model/initialization.h"
#include "model/layout.h"

namespace gradflow {

namespace {

double one_check(const OperatorCheck& check, std::int64_t seed) {
  const auto drawn = static_cast<std::uint64_t>(seed);
  switch (check.row->kind) {
    case OperatorKind::power:
    case OperatorKind::deepnorm_constant:
    case OperatorKind::deepnorm_std: return constant_check(check);
    case OperatorKind::matrix_product:
    case OperatorKind::residual_product:
    case OperatorKind::cancelled_branch: return product_check(check, drawn);
    case OperatorKind::sum_formula:
    case OperatorKind::stack_gradient:
    case OperatorKind::mode_gap:
    case OperatorKind::model_update: return stack_check(check, drawn);
    default: return norm_check(check, drawn);
  }
}

}  // namespace

double run_check(const OperatorCheck& check, std::int64_t seed) {
  const double value = one_check(check, seed);
  return check.relative_to.empty() ? value : value / one_check(check.relative_to.front(), seed);
}

at::Tensor normals(at::IntArrayRef shape, std::uint64_t seed, const std::string& name) {
  const at::Tensor values = at::empty(shape, at::kDouble);
  const ParameterSpec spec{"check/" + name, shape.vec(), {.distribution = Distribution::normal, .std = 1}};
  initialize(spec, seed, values.view({-1}));
  return values;
}

double relative_difference(const at::Tensor& a, const at::Tensor& b) {
  return ((a - b).norm() / b.norm()).item<double>();
}

}  // namespace gradflow
