// Included once for each instruction set, inside files that include <hwy/foreach_target.h>: sums in double that come
// out with the same bits at all of them.

#if defined(GRADFLOW_KERNELS_LANE_SUMS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef GRADFLOW_KERNELS_LANE_SUMS_INL_H
#undef GRADFLOW_KERNELS_LANE_SUMS_INL_H
#else
#define GRADFLOW_KERNELS_LANE_SUMS_INL_H
#endif

#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gradflow {
namespace HWY_NAMESPACE {

/// The widest vector of doubles, at most 8 lanes.
using DoubleTag = hn::CappedTag<double, 8>;
using Doubles = hn::Vec<DoubleTag>;
constexpr std::size_t double_lanes = hn::MaxLanes(DoubleTag());

/// Σ x or Σ x² in sixteen lanes, whatever a vector holds: element i of a tensor belongs to lane i mod 16. Two vectors
/// at least, so that additions wait less for each other.
class LaneSums {
 public:
  static constexpr std::size_t lanes = 16, vectors = lanes / double_lanes;

  LaneSums() {
    for (Doubles& sum : sums_) sum = hn::Zero(DoubleTag());
  }

  /// To lanes double_lanes·vector ….
  HWY_INLINE void add(std::size_t vector, Doubles x) { sums_[vector] = hn::Add(sums_[vector], x); }
  HWY_INLINE void add_square(std::size_t vector, Doubles x) { sums_[vector] = hn::Add(sums_[vector], hn::Mul(x, x)); }
  /// The same of what was a float: its square has no rounding in double, so that a fused multiply-add changes nothing.
  HWY_INLINE void add_square_of_float(std::size_t vector, Doubles x) {
    sums_[vector] = hn::MulAdd(x, x, sums_[vector]);
  }
  /// The squares of elements i … of a tensor; i is a multiple of the lanes of a vector of floats.
  HWY_INLINE void add_squares(std::size_t i, Vector v) {
    const std::size_t vector = i % lanes / double_lanes;
#if HWY_TARGET == HWY_SCALAR
    add_square_of_float(vector, hn::PromoteTo(DoubleTag(), v));
#else
    const hn::Half<Tag> half;
    add_square_of_float(vector, hn::PromoteTo(DoubleTag(), hn::LowerHalf(half, v)));
    add_square_of_float(vector + 1, hn::PromoteTo(DoubleTag(), hn::UpperHalf(half, v)));
#endif
  }

  /// Lane k and k + 8, then k and k + 4, k + 2, k + 1.
  HWY_INLINE double total() const {
    Doubles folded[vectors];
    for (std::size_t k = 0; k < vectors; ++k) folded[k] = sums_[k];
    for (std::size_t count = vectors / 2; count > 0; count /= 2)
      for (std::size_t k = 0; k < count; ++k) folded[k] = hn::Add(folded[k], folded[k + count]);
    return total(DoubleTag(), folded[0]);
  }

 private:
  template <class D>
  static HWY_INLINE double total(D, hn::Vec<D> v) {
#if HWY_TARGET != HWY_SCALAR
    if constexpr (hn::MaxLanes(D()) > 1) {
      const hn::Half<D> half;
      return total(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
    } else
#endif
      return hn::GetLane(v);
  }

  Doubles sums_[vectors];
};

}  // namespace HWY_NAMESPACE
}  // namespace gradflow
HWY_AFTER_NAMESPACE();

#endif
