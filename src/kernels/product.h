#pragma once

#include <cstddef>

#include "kernels/fetch_ahead.h"

namespace gradflow {

// A matrix product for the small matrices of narrow models, where a BLAS spends a fifth of its time on arranging its
// operands and cannot be told what to fetch meanwhile. It reads its right operand in panels of columns, each of which
// stays in the first-level cache while all rows pass by. README.md says where it is faster, and by how much.

/// Columns of a panel.
constexpr std::size_t panel_width = 64;

/// c = a·b, or c += a·b, of row-major matrices.
struct ProductShape {
  std::size_t rows = 0;       ///< of c
  std::size_t columns = 0;    ///< of c; a multiple of 16
  std::size_t terms = 0;      ///< of each sum
  std::size_t a_step = 0;     ///< floats from row to row
  bool a_transposed = false;  ///< a is [terms, rows], not [rows, terms]
  std::size_t b_step = 0;     ///< floats from row to row of b [terms, columns]
  std::size_t b_panel = 0;    ///< floats from a panel of b to the next: `panel_width` where b is one matrix
  std::size_t c_step = 0;
  bool add = false;
};

/// Fetches from `ahead` while it computes. Sums run in the order of the terms, whatever the number of rows.
void product(const ProductShape& shape, const float* a, const float* b, float* c, FetchAhead& ahead);

/// Floats that a matrix of so many columns takes in panels, [panels][rows][panel_width].
constexpr std::size_t packed_size(std::size_t rows, std::size_t columns) {
  return rows * ((columns + panel_width - 1) / panel_width * panel_width);
}
/// `from` [rows, columns] in panels. Columns are a multiple of 16.
void pack(std::size_t rows, std::size_t columns, const float* from, float* to);
/// fromᵀ [columns, rows] in panels. Rows are a multiple of 16, columns of 4.
void pack_transposed(std::size_t rows, std::size_t columns, const float* from, float* to);

}  // namespace gradflow
