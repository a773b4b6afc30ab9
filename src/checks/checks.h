#pragma once

#include <cstdint>
#include <string>

#include "claims/operators.h"
#include "model/tensor.h"

namespace gradflow {

/// The number of a check for one seed; what it is, its row in claims/operators.cpp says. In double.
double run_check(const OperatorCheck& check, std::int64_t seed);

// The families, one file each.
double product_check(const OperatorCheck& check, std::uint64_t seed);
double norm_check(const OperatorCheck& check, std::uint64_t seed);
double stack_check(const OperatorCheck& check, std::uint64_t seed);
double constant_check(const OperatorCheck& check);

/// Independent standard normals in double, drawn by the seed and a name.
at::Tensor normals(at::IntArrayRef shape, std::uint64_t seed, const std::string& name);

/// ‖a − b‖/‖b‖.
double relative_difference(const at::Tensor& a, const at::Tensor& b);

}  // namespace gradflow
