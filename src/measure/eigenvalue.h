#pragma once

#include <functional>

#include "model/tensor.h"

namespace gradflow {

/// A symmetric matrix that is known only by what it does to a vector [n].
using SymmetricMap = std::function<at::Tensor(const at::Tensor&)>;

/// The algebraically largest eigenvalue, by power iteration as Lanczos does it: the iterates of `start` (float64, not
/// zero) are combined, so that clustered and negative eigenvalues cost no more. Ends when the residual bound of the
/// value is below `tolerance` of it, or after `most_products` products. nan when a product is not finite.
double largest_eigenvalue(const SymmetricMap& apply, const at::Tensor& start, double tolerance = 1e-3,
                          int most_products = 60);

}  // namespace gradflow
