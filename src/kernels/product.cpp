#include "kernels/product.h"

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/product.cpp"
#include <hwy/foreach_target.h>
//
#include <algorithm>
#include <type_traits>

#include "kernels/transpose-inl.h"
#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gradflow {
namespace HWY_NAMESPACE {
namespace {

// A tile of c stays in registers while the terms pass by: for each of them a row of b is read once, and an element of a
// once for each row of the tile. Tiles are as large as the register file allows beside these operands.
constexpr std::size_t most_vectors = registers == 32 ? 4 : 2;
constexpr std::size_t tile_rows(std::size_t vectors) {
  if (registers == 32) return vectors == 4 ? 6 : vectors == 3 ? 8 : 12;
  return vectors == 2 ? 6 : 12;
}

/// A panel of b with as many terms, 32 kB, leaves room for the rest in a first-level cache of 48 kB.
constexpr std::size_t terms_together = 128;

template <std::size_t rows, std::size_t vectors, bool a_transposed>
HWY_INLINE void tile(const ProductShape& s, const float* a, const float* b, float* c, FetchAhead& ahead) {
  const Tag d;
  const FetchAhead::Lines lines = ahead.take(s.terms);
  Vector sums[rows][vectors];
  if (s.add) {
#pragma GCC unroll 12
    for (std::size_t i = 0; i < rows; ++i)
#pragma GCC unroll 4
      for (std::size_t j = 0; j < vectors; ++j) sums[i][j] = hn::LoadU(d, c + i * s.c_step + j * lane_count);
  } else {
#pragma GCC unroll 12
    for (std::size_t i = 0; i < rows; ++i)
#pragma GCC unroll 4
      for (std::size_t j = 0; j < vectors; ++j) sums[i][j] = hn::Zero(d);
  }
  for (std::size_t k = 0; k < s.terms; ++k, b += s.b_step, a += a_transposed ? s.a_step : 1) {
    lines.fetch(k);
    Vector row[vectors];
#pragma GCC unroll 4
    for (std::size_t j = 0; j < vectors; ++j) row[j] = hn::LoadU(d, b + j * lane_count);
#pragma GCC unroll 12
    for (std::size_t i = 0; i < rows; ++i) {
      const Vector factor = hn::Set(d, a[a_transposed ? i : i * s.a_step]);
#pragma GCC unroll 4
      for (std::size_t j = 0; j < vectors; ++j) sums[i][j] = hn::MulAdd(factor, row[j], sums[i][j]);
    }
  }
#pragma GCC unroll 12
  for (std::size_t i = 0; i < rows; ++i)
#pragma GCC unroll 4
    for (std::size_t j = 0; j < vectors; ++j) hn::StoreU(sums[i][j], d, c + i * s.c_step + j * lane_count);
}

/// All rows of c, `vectors` vectors wide.
template <std::size_t vectors, bool a_transposed>
void tiles(const ProductShape& s, const float* a, const float* b, float* c, FetchAhead& ahead) {
  std::size_t left = s.rows;
  const auto tiles_of = [&](auto rows) HWY_ATTR {
    for (; left >= rows; left -= rows, c += rows * s.c_step, a += rows * (a_transposed ? 1 : s.a_step))
      tile<rows, vectors, a_transposed>(s, a, b, c, ahead);
  };
  tiles_of(std::integral_constant<std::size_t, tile_rows(vectors)>());
  tiles_of(std::integral_constant<std::size_t, 4>());
  tiles_of(std::integral_constant<std::size_t, 1>());
}

template <bool a_transposed, std::size_t most = most_vectors>
void panel(const ProductShape& s, std::size_t width, const float* a, const float* b, float* c, FetchAhead& ahead) {
  for (std::size_t left = width / lane_count; left > 0;) {
    // Of even width: 6 vectors are 3 and 3, not 4 and 2.
    const std::size_t pieces = (left + most - 1) / most;
    const std::size_t vectors = (left + pieces - 1) / pieces;
    if constexpr (most == 4) {
      if (vectors == 4) tiles<4, a_transposed>(s, a, b, c, ahead);
      if (vectors == 3) tiles<3, a_transposed>(s, a, b, c, ahead);
    }
    if (vectors == 2) tiles<2, a_transposed>(s, a, b, c, ahead);
    if (vectors == 1) tiles<1, a_transposed>(s, a, b, c, ahead);
    b += vectors * lane_count;
    c += vectors * lane_count;
    left -= vectors;
  }
}

void Product(const ProductShape& shape, const float* a, const float* b, float* c, FetchAhead& ahead) {
  ProductShape some = shape;
  for (std::size_t term = 0; term < shape.terms; term += terms_together) {
    some.terms = std::min(terms_together, shape.terms - term);
    some.add = shape.add || term > 0;
    const float* const columns_of_a = a + term * (shape.a_transposed ? shape.a_step : 1);
    const float* panel_of_b = b + term * shape.b_step;
    for (std::size_t column = 0; column < shape.columns; column += panel_width, panel_of_b += shape.b_panel) {
      const std::size_t width = std::min(panel_width, shape.columns - column);
      if (shape.a_transposed)
        panel<true>(some, width, columns_of_a, panel_of_b, c + column, ahead);
      else
        panel<false>(some, width, columns_of_a, panel_of_b, c + column, ahead);
    }
  }
}

void PackTransposed(std::size_t rows, std::size_t columns, const float* from, float* to) {
  for (std::size_t first = 0; first < rows; first += panel_width, to += columns * panel_width) {
    const std::size_t width = std::min(panel_width, rows - first);
    for (std::size_t c = 0; c < columns; c += 4)
      for (std::size_t r = 0; r < width; r += lane_count) {
        Vector v[4];
        load_four(from + (first + r) * columns + c, columns, v);
        for (std::size_t i = 0; i < 4; ++i) hn::StoreU(v[i], Tag(), to + (c + i) * panel_width + r);
      }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace gradflow
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradflow {

HWY_EXPORT(Product);
HWY_EXPORT(PackTransposed);

void product(const ProductShape& shape, const float* a, const float* b, float* c, FetchAhead& ahead) {
  HWY_DYNAMIC_DISPATCH(Product)(shape, a, b, c, ahead);
}

void pack(std::size_t rows, std::size_t columns, const float* from, float* to) {
  for (std::size_t first = 0; first < columns; first += panel_width) {
    const std::size_t width = std::min(panel_width, columns - first);
    for (std::size_t r = 0; r < rows; ++r, to += panel_width) std::copy_n(from + r * columns + first, width, to);
  }
}

void pack_transposed(std::size_t rows, std::size_t columns, const float* from, float* to) {
  HWY_DYNAMIC_DISPATCH(PackTransposed)(rows, columns, from, to);
}

}  // namespace gradflow
#endif
