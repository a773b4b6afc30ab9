#pragma once

#include <cstddef>
#include <cstdint>

namespace gradflow {

// Sums over CPU arrays of float or double, always added in double: a float32 sum of squares reads 0 below about 1e-23
// an element and inf above 1e19, and both are this tool's subject. The order of addition is fixed (sixteen lanes), so
// the result has the same bits at every SIMD level.

double sum_of_squares(const float* values, std::size_t count);
double sum_of_squares(const double* values, std::size_t count);

/// How many of the values are nan or infinite.
std::int64_t count_nonfinite(const float* values, std::size_t count);
std::int64_t count_nonfinite(const double* values, std::size_t count);

/// Sums over the rows (tokens) of a row-major matrix [rows, features].
struct RowSums {
  double rows = 0;          ///< rows counted
  double sum = 0;           ///< Σ over rows and features
  double squares = 0;       ///< Σ x²
  double variance_sum = 0;  ///< Σ over rows of the biased variance over the features of the row
};

/// `real` [rows], null: all rows count.
RowSums row_sums(const float* values, std::size_t rows, std::size_t features, const bool* real);
RowSums row_sums(const double* values, std::size_t rows, std::size_t features, const bool* real);

}  // namespace gradflow
