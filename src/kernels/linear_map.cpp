#include "kernels/linear_map.h"

#include <algorithm>
#include <utility>

#include "kernels/product.h"

extern "C" {
/// c = alpha·op(a)·op(b) + beta·c, column-major (BLAS, level 3).
void sgemm_(const char* transpose_a, const char* transpose_b, const int* m, const int* n, const int* k,
            const float* alpha, const float* a, const int* a_step, const float* b, const int* b_step, const float* beta,
            float* c, const int* c_step);
}

namespace gradflow {
namespace {

/// Where our own product is faster: up to the feed-forward maps of width 128. Measured: README.md.
bool has_own_product(std::size_t in, std::size_t out) {
  constexpr std::size_t widest = 512, largest = 128 * widest;
  return in % 16 == 0 && out % 16 == 0 && in <= widest && out <= widest && in * out <= largest;
}

/// A row-major matrix [rows, columns] is a column-major [columns, rows] with the same step.
void blas(char transpose_a, char transpose_b, std::size_t m, std::size_t n, std::size_t k, Rows<const float> a,
          Rows<const float> b, float beta, Rows<float> c) {
  const int sizes[] = {static_cast<int>(m),      static_cast<int>(n),      static_cast<int>(k),
                       static_cast<int>(a.step), static_cast<int>(b.step), static_cast<int>(c.step)};
  const float one = 1;
  sgemm_(&transpose_a, &transpose_b, &sizes[0], &sizes[1], &sizes[2], &one, a.first, &sizes[3], b.first, &sizes[4],
         &beta, c.first, &sizes[5]);
}

}  // namespace

LinearMap::LinearMap(const Parameter& weight, std::size_t in, std::size_t out, WeightRoom& room, FetchAhead& ahead)
    : weight_(weight),
      in_(in),
      out_(out),
      packed_(has_own_product(in, out) ? room.take(packed_size(in, out)) : nullptr),
      ahead_(&ahead) {}

std::size_t LinearMap::packed_size(std::size_t in, std::size_t out) {
  if (!has_own_product(in, out)) return 0;
  return std::max(gradflow::packed_size(in, out), gradflow::packed_size(out, in));
}

void LinearMap::begin_forward() const {
  if (packed_ != nullptr) pack_transposed(out_, in_, weight_.value, packed_);
}

void LinearMap::begin_backward() const {
  // One panel lies as it must already.
  if (packed_ != nullptr && in_ > panel_width) pack(out_, in_, weight_.value, packed_);
}

void LinearMap::forward(std::size_t rows, Rows<const float> x, Rows<float> y) const {
  if (packed_ == nullptr) return blas('T', 'N', out_, rows, in_, {weight_.value, in_}, x, 0, y);
  product({.rows = rows,
           .columns = out_,
           .terms = in_,
           .a_step = x.step,
           .b_step = panel_width,
           .b_panel = in_ * panel_width,
           .c_step = y.step},
          x.first, packed_, y.first, *ahead_);
}

void LinearMap::input_gradient(std::size_t rows, Rows<const float> dy, Rows<float> dx, bool add) const {
  if (packed_ == nullptr) return blas('N', 'N', in_, rows, out_, {weight_.value, in_}, dy, add ? 1 : 0, dx);
  const bool one_panel = in_ <= panel_width;
  product({.rows = rows,
           .columns = in_,
           .terms = out_,
           .a_step = dy.step,
           .b_step = one_panel ? in_ : panel_width,
           .b_panel = out_ * panel_width,
           .c_step = dx.step,
           .add = add},
          dy.first, one_panel ? weight_.value : packed_, dx.first, *ahead_);
}

void LinearMap::add_weight_gradient(std::size_t rows, Rows<const float> dy, Rows<const float> x) {
  const bool add = !std::exchange(set_gradient_, false);
  if (packed_ == nullptr) return blas('N', 'T', in_, out_, rows, x, dy, add ? 1 : 0, {weight_.gradient, in_});
  product({.rows = out_,
           .columns = in_,
           .terms = rows,
           .a_step = dy.step,
           .a_transposed = true,
           .b_step = x.step,
           .b_panel = panel_width,
           .c_step = in_,
           .add = add},
          dy.first, x.first, weight_.gradient, *ahead_);
}

}  // namespace gradflow
