// Included once for each instruction set, inside files that include <hwy/foreach_target.h>.

#if defined(GRADFLOW_KERNELS_TRANSPOSE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef GRADFLOW_KERNELS_TRANSPOSE_INL_H
#undef GRADFLOW_KERNELS_TRANSPOSE_INL_H
#else
#define GRADFLOW_KERNELS_TRANSPOSE_INL_H
#endif

#include <cstddef>

#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gradflow {
namespace HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR
/// Four floats of every fourth row side by side.
template <class D>
HWY_INLINE hn::Vec<D> every_fourth_row(D d, const float* from, std::size_t step) {
  if constexpr (hn::MaxLanes(D()) == 4) {
    return hn::LoadU(d, from);
  } else {
    const hn::Half<D> half;
    return hn::Combine(d, every_fourth_row(half, from + hn::MaxLanes(half) * step, step),
                       every_fourth_row(half, from, step));
  }
}
#endif

/// Four columns of as many rows as a vector has lanes become four vectors: to[c·to_step + r] = from[r·from_step + c].
HWY_INLINE void transpose_four_columns(const float* from, [[maybe_unused]] std::size_t from_step, float* to,
                                       std::size_t to_step) {
#if HWY_TARGET == HWY_SCALAR
  for (std::size_t c = 0; c < 4; ++c) to[c * to_step] = from[c];
#else
  const Tag d;
  const hn::Repartition<double, Tag> pairs;
  // Squares of four by four, transposed side by side.
  const auto rows = [&](std::size_t first)
                        HWY_ATTR { return every_fourth_row(d, from + first * from_step, from_step); };
  const Vector a = rows(0), b = rows(1), c = rows(2), e = rows(3);
  const auto ab_low = hn::BitCast(pairs, hn::InterleaveLower(d, a, b));
  const auto ab_high = hn::BitCast(pairs, hn::InterleaveUpper(d, a, b));
  const auto ce_low = hn::BitCast(pairs, hn::InterleaveLower(d, c, e));
  const auto ce_high = hn::BitCast(pairs, hn::InterleaveUpper(d, c, e));
  const auto store = [&](auto v, std::size_t column)
                         HWY_ATTR { hn::StoreU(hn::BitCast(d, v), d, to + column * to_step); };
  store(hn::InterleaveLower(pairs, ab_low, ce_low), 0);
  store(hn::InterleaveUpper(pairs, ab_low, ce_low), 1);
  store(hn::InterleaveLower(pairs, ab_high, ce_high), 2);
  store(hn::InterleaveUpper(pairs, ab_high, ce_high), 3);
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace gradflow
HWY_AFTER_NAMESPACE();

#endif
