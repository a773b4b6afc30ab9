#pragma once

#include <cstddef>

namespace gradflow {

/// The residual sum y = skip_factor·x + branch_factor·(f + bias) over [rows, width].
struct SumShape {
  std::size_t rows = 0;
  std::size_t width = 0;
  float skip_factor = 1;
  float branch_factor = 1;
};

/// What someone wants to see of the two terms of the sum; null: nobody does.
struct ShownTerms {
  float *skip = nullptr, *branch = nullptr;  ///< [rows, width], written
  double* branch_squares = nullptr;          ///< Σ of the squares of the branch's term is added
};

/// `x` null: no skip path; `bias` null: none. y has the same bits whatever is shown.
void residual_sum(const SumShape& shape, const float* x, const float* f, const float* bias, float* y,
                  const ShownTerms& shown);

/// y [rows, width] += bias [width].
void add_bias(std::size_t rows, std::size_t width, const float* bias, float* y);
/// y = factor·x.
void scale(std::size_t count, float factor, const float* x, float* y);
/// y = keep·y + factor·x; with keep 0, y is not read.
void scaled_add(std::size_t count, float keep, float factor, const float* x, float* y);
/// sums [width] += Σ over the rows of x [rows, width], whose rows begin `step` floats apart.
void add_column_sums(std::size_t rows, std::size_t width, const float* x, std::size_t step, float* sums);
/// Σ xᵢ·yᵢ, added in double.
double dot(std::size_t count, const float* x, const float* y);

}  // namespace gradflow
