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
/// Four floats of every fourth row from the first on, each in a block of four lanes.
template <class D>
HWY_INLINE hn::Vec<D> load_blocks(D d, const float* from, std::size_t step) {
  if constexpr (hn::MaxLanes(D()) == 4) {
    return hn::LoadU(d, from);
  } else {
    const hn::Half<D> half;
    const float* const upper = from + hn::MaxLanes(half) * step;
    return hn::Combine(d, load_blocks(half, upper, step), load_blocks(half, from, step));
  }
}

template <class D>
HWY_INLINE void store_blocks(D d, hn::Vec<D> v, float* to, std::size_t step) {
  if constexpr (hn::MaxLanes(D()) == 4) {
    hn::StoreU(v, d, to);
  } else {
    const hn::Half<D> half;
    store_blocks(half, hn::LowerHalf(half, v), to, step);
    store_blocks(half, hn::UpperHalf(half, v), to + hn::MaxLanes(half) * step, step);
  }
}

/// Swaps rows and columns of the 4x4 matrix that the four vectors hold in each block of four lanes.
HWY_INLINE void transpose_blocks(Vector (&v)[4]) {
  const Tag d;
  const hn::Repartition<double, Tag> pairs;
  const auto low = hn::BitCast(pairs, hn::InterleaveLower(d, v[0], v[1]));
  const auto high = hn::BitCast(pairs, hn::InterleaveUpper(d, v[0], v[1]));
  const auto next_low = hn::BitCast(pairs, hn::InterleaveLower(d, v[2], v[3]));
  const auto next_high = hn::BitCast(pairs, hn::InterleaveUpper(d, v[2], v[3]));
  v[0] = hn::BitCast(d, hn::InterleaveLower(pairs, low, next_low));
  v[1] = hn::BitCast(d, hn::InterleaveUpper(pairs, low, next_low));
  v[2] = hn::BitCast(d, hn::InterleaveLower(pairs, high, next_high));
  v[3] = hn::BitCast(d, hn::InterleaveUpper(pairs, high, next_high));
}
#endif

/// Four features of as many tokens as there are lanes, v[feature], from rows.
HWY_INLINE void load_four(const float* rows, [[maybe_unused]] std::size_t step, Vector (&v)[4]) {
#if HWY_TARGET == HWY_SCALAR
  for (std::size_t i = 0; i < 4; ++i) v[i] = hn::LoadU(Tag(), rows + i);
#else
  for (std::size_t i = 0; i < 4; ++i) v[i] = load_blocks(Tag(), rows + i * step, step);
  transpose_blocks(v);
#endif
}

/// The way back, into rows.
HWY_INLINE void store_four(Vector (&v)[4], float* rows, [[maybe_unused]] std::size_t step) {
#if HWY_TARGET == HWY_SCALAR
  for (std::size_t i = 0; i < 4; ++i) hn::StoreU(v[i], Tag(), rows + i);
#else
  transpose_blocks(v);
  for (std::size_t i = 0; i < 4; ++i) store_blocks(Tag(), v[i], rows + i * step, step);
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace gradflow
HWY_AFTER_NAMESPACE();

#endif
