#include "kernels/optimizer_update.h"

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/optimizer_update.cpp"
#include <hwy/foreach_target.h>
//
#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gradflow {
namespace HWY_NAMESPACE {
namespace {

HWY_INLINE Vector all(float value) { return hn::Set(Tag(), value); }

/// clip·gradient + l2·w
HWY_INLINE Vector decayed(const UpdateConstants& c, Vector gradient, Vector w) {
  return hn::Add(hn::Mul(gradient, all(c.clip)), hn::Mul(all(c.l2), w));
}

/// Σ x² in eight lanes of doubles: element i of a tensor goes to lane i mod 8. The square of a float is exact in
/// double, so that a fused multiply-add changes nothing.
class SumOfSquares {
 public:
  SumOfSquares() {
    for (Doubles& sum : sums_) sum = hn::Zero(doubles);
  }

  /// Elements i … of the tensor; i is a multiple of the lanes of a vector.
  HWY_INLINE void add(std::size_t i, Vector v) {
#if HWY_TARGET == HWY_SCALAR
    add_part(i, v);
#else
    const hn::Half<Tag> half;
    const auto low = hn::LowerHalf(half, v), high = hn::UpperHalf(half, v);
    add_part(i, low);
    add_part(i + lane_count / 2, high);
#endif
  }

  double total() const {
    alignas(64) double lanes[8];
    for (std::size_t k = 0; k < sums_size; ++k) hn::Store(sums_[k], doubles, lanes + k * double_lanes);
    return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
  }

 private:
  static constexpr hn::CappedTag<double, 8> doubles{};
  using Doubles = hn::Vec<hn::CappedTag<double, 8>>;
  static constexpr std::size_t double_lanes = hn::MaxLanes(doubles), sums_size = 8 / double_lanes;

  template <class Part>
  HWY_INLINE void add_part(std::size_t i, Part v) {
    const Doubles x = hn::PromoteTo(doubles, v);
    Doubles& sum = sums_[i % 8 / double_lanes];
    sum = hn::MulAdd(x, x, sum);
  }

  Doubles sums_[sums_size];
};

struct Sums {
  SumOfSquares before, after, change;
  UpdateSquares totals() const { return {before.total(), after.total(), change.total()}; }
};

/// Writes kept·w − rate·direction and measures what that changed.
template <class Access>
HWY_INLINE void step(const UpdateConstants& c, std::size_t i, Access access, Vector before, Vector direction, float* w,
                     Sums& sums) {
  const Vector after = hn::Sub(hn::Mul(before, all(c.kept)), hn::Mul(all(c.rate), direction));
  access.store(after, w + i);
  sums.before.add(i, access.only(before));
  sums.after.add(i, access.only(after));
  sums.change.add(i, access.only(hn::Sub(after, before)));
}

UpdateSquares AdamUpdate(const UpdateConstants& c, std::size_t count, const float* gradient, float* w, float* m,
                         float* v) {
  Sums sums;
  for_each_vector(count, [&](std::size_t i, auto access) HWY_ATTR {
    const Vector before = access.load(w + i);
    const Vector g = decayed(c, access.load(gradient + i), before);
    const Vector first = hn::Add(hn::Mul(all(c.beta1), access.load(m + i)), hn::Mul(all(c.one_less_beta1), g));
    const Vector second =
        hn::Add(hn::Mul(all(c.beta2), access.load(v + i)), hn::Mul(hn::Mul(all(c.one_less_beta2), g), g));
    access.store(first, m + i);
    access.store(second, v + i);
    const Vector root = hn::Sqrt(hn::Mul(second, all(c.correction2)));
    const Vector direction = hn::Div(hn::Mul(first, all(c.correction1)), hn::Add(root, all(c.epsilon)));
    step(c, i, access, before, direction, w, sums);
  });
  return sums.totals();
}

UpdateSquares SgdUpdate(const UpdateConstants& c, std::size_t count, const float* gradient, float* w, float* m) {
  Sums sums;
  for_each_vector(count, [&](std::size_t i, auto access) HWY_ATTR {
    const Vector before = access.load(w + i);
    const Vector first =
        hn::Add(hn::Mul(all(c.momentum), access.load(m + i)), decayed(c, access.load(gradient + i), before));
    access.store(first, m + i);
    step(c, i, access, before, first, w, sums);
  });
  return sums.totals();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace gradflow
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradflow {

HWY_EXPORT(AdamUpdate);
HWY_EXPORT(SgdUpdate);

UpdateSquares adam_update(const UpdateConstants& constants, std::size_t count, const float* gradient, float* w,
                          float* m, float* v) {
  return HWY_DYNAMIC_DISPATCH(AdamUpdate)(constants, count, gradient, w, m, v);
}

UpdateSquares sgd_update(const UpdateConstants& constants, std::size_t count, const float* gradient, float* w,
                         float* m) {
  return HWY_DYNAMIC_DISPATCH(SgdUpdate)(constants, count, gradient, w, m);
}

}  // namespace gradflow
#endif
