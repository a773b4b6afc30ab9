// Included once for each instruction set, inside files that include <hwy/foreach_target.h>.

#if defined(GRADFLOW_KERNELS_TRANSPOSE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef GRADFLOW_KERNELS_TRANSPOSE_INL_H
#undef GRADFLOW_KERNELS_TRANSPOSE_INL_H
#else
#define GRADFLOW_KERNELS_TRANSPOSE_INL_H
#endif

#include <hwy/highway.h>

#include <cstddef>

HWY_BEFORE_NAMESPACE();
namespace gradflow {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// to[c][r] = from[r][c] for four rows and four columns.
HWY_INLINE void transpose_four(const float* from, std::size_t from_step, float* to, std::size_t to_step) {
#if HWY_TARGET == HWY_SCALAR
  for (std::size_t r = 0; r < 4; ++r)
    for (std::size_t c = 0; c < 4; ++c) to[c * to_step + r] = from[r * from_step + c];
#else
  const hn::FixedTag<float, 4> four;
  const hn::FixedTag<double, 2> pairs;
  const auto load = [&](std::size_t r) HWY_ATTR { return hn::LoadU(four, from + r * from_step); };
  const auto a = load(0), b = load(1), c = load(2), e = load(3);
  const auto ab_low = hn::BitCast(pairs, hn::InterleaveLower(four, a, b));
  const auto ab_high = hn::BitCast(pairs, hn::InterleaveUpper(four, a, b));
  const auto ce_low = hn::BitCast(pairs, hn::InterleaveLower(four, c, e));
  const auto ce_high = hn::BitCast(pairs, hn::InterleaveUpper(four, c, e));
  const auto store = [&](auto v, std::size_t row)
                         HWY_ATTR { hn::StoreU(hn::BitCast(four, v), four, to + row * to_step); };
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
