#include "kernels/elementwise.h"

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise.cpp"
#include <hwy/foreach_target.h>
//
#include "kernels/lane_sums-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gradflow {
namespace HWY_NAMESPACE {
namespace {

/// Compiled once for when nothing is shown, which is nearly always: three questions fewer for each vector.
template <bool shows>
HWY_INLINE void residual_sum(const SumShape& shape, const float* x, const float* f, const float* bias, float* y,
                             const ShownTerms& shown) {
  const Tag d;
  LaneSums squares;
  const std::size_t width = shape.width;
  const Vector skip_factor = hn::Set(d, shape.skip_factor), branch_factor = hn::Set(d, shape.branch_factor);
  for (std::size_t row = 0; row < shape.rows; ++row) {
    const std::size_t start = row * width;
    for_each_vector(width, [&](std::size_t i, auto access) HWY_ATTR {
      const std::size_t at = start + i;
      Vector term = access.load(f + at);
      if (bias != nullptr) term = hn::Add(term, access.load(bias + i));
      term = hn::Mul(term, branch_factor);
      if (shows && shown.branch != nullptr) access.store(term, shown.branch + at);
      if (shows && shown.branch_squares != nullptr) squares.add_squares(i, access.only(term));
      if (x != nullptr) {
        const Vector kept = hn::Mul(access.load(x + at), skip_factor);
        if (shows && shown.skip != nullptr) access.store(kept, shown.skip + at);
        term = hn::Add(kept, term);
      }
      access.store(term, y + at);
    });
  }
  if (shows && shown.branch_squares != nullptr) *shown.branch_squares += squares.total();
}

void ResidualSum(const SumShape& shape, const float* x, const float* f, const float* bias, float* y,
                 const ShownTerms& shown) {
  if (shown.skip == nullptr && shown.branch == nullptr && shown.branch_squares == nullptr)
    residual_sum</*shows=*/false>(shape, x, f, bias, y, shown);
  else
    residual_sum</*shows=*/true>(shape, x, f, bias, y, shown);
}

void AddBias(std::size_t rows, std::size_t width, const float* bias, float* y) {
  for (std::size_t row = 0; row < rows; ++row, y += width)
    for_each_vector(width, [&](std::size_t i, auto access)
                               HWY_ATTR { access.store(hn::Add(access.load(y + i), access.load(bias + i)), y + i); });
}

void Scale(std::size_t count, float factor, const float* x, float* y) {
  const Vector factors = hn::Set(Tag(), factor);
  for_each_vector(
      count, [&](std::size_t i, auto access) HWY_ATTR { access.store(hn::Mul(access.load(x + i), factors), y + i); });
}

void ScaledAdd(std::size_t count, float keep, float factor, const float* x, float* y) {
  if (keep == 0) return Scale(count, factor, x, y);
  const Tag d;
  const Vector factors = hn::Set(d, factor), kept = hn::Set(d, keep);
  for_each_vector(count, [&](std::size_t i, auto access) HWY_ATTR {
    access.store(hn::MulAdd(kept, access.load(y + i), hn::Mul(access.load(x + i), factors)), y + i);
  });
}

/// Four vectors of columns at once: fewer, and the additions would wait for each other.
void AddColumnSums(std::size_t rows, std::size_t width, const float* x, std::size_t step, float* sums) {
  constexpr std::size_t together = 4;
  std::size_t i = 0;
  for (; i + together * lane_count <= width; i += together * lane_count) {
    Vector sum[together];
    for (std::size_t k = 0; k < together; ++k) sum[k] = hn::LoadU(Tag(), sums + i + k * lane_count);
    for (std::size_t row = 0; row < rows; ++row)
      for (std::size_t k = 0; k < together; ++k)
        sum[k] = hn::Add(sum[k], hn::LoadU(Tag(), x + row * step + i + k * lane_count));
    for (std::size_t k = 0; k < together; ++k) hn::StoreU(sum[k], Tag(), sums + i + k * lane_count);
  }
  for_each_vector(width - i, [&](std::size_t k, auto access) HWY_ATTR {
    Vector sum = access.load(sums + i + k);
    for (std::size_t row = 0; row < rows; ++row) sum = hn::Add(sum, access.load(x + row * step + i + k));
    access.store(sum, sums + i + k);
  });
}

double Dot(std::size_t count, const float* x, const float* y) {
  constexpr std::size_t together = 8;
  double sums[together] = {};
  std::size_t i = 0;
  for (; i + together <= count; i += together)
    for (std::size_t k = 0; k < together; ++k) sums[k] += static_cast<double>(x[i + k]) * static_cast<double>(y[i + k]);
  for (; i < count; ++i) sums[i % together] += static_cast<double>(x[i]) * static_cast<double>(y[i]);
  double sum = 0;
  for (const double part : sums) sum += part;
  return sum;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace gradflow
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradflow {

HWY_EXPORT(ResidualSum);
HWY_EXPORT(AddBias);
HWY_EXPORT(Scale);
HWY_EXPORT(ScaledAdd);
HWY_EXPORT(AddColumnSums);
HWY_EXPORT(Dot);

void residual_sum(const SumShape& shape, const float* x, const float* f, const float* bias, float* y,
                  const ShownTerms& shown) {
  HWY_DYNAMIC_DISPATCH(ResidualSum)(shape, x, f, bias, y, shown);
}
void add_bias(std::size_t rows, std::size_t width, const float* bias, float* y) {
  HWY_DYNAMIC_DISPATCH(AddBias)(rows, width, bias, y);
}
void scale(std::size_t count, float factor, const float* x, float* y) {
  HWY_DYNAMIC_DISPATCH(Scale)(count, factor, x, y);
}
void scaled_add(std::size_t count, float keep, float factor, const float* x, float* y) {
  HWY_DYNAMIC_DISPATCH(ScaledAdd)(count, keep, factor, x, y);
}
void add_column_sums(std::size_t rows, std::size_t width, const float* x, std::size_t step, float* sums) {
  HWY_DYNAMIC_DISPATCH(AddColumnSums)(rows, width, x, step, sums);
}
double dot(std::size_t count, const float* x, const float* y) { return HWY_DYNAMIC_DISPATCH(Dot)(count, x, y); }

}  // namespace gradflow
#endif
