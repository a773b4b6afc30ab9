#include "kernels/optimizer_update.h"

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/optimizer_update.cpp"
#include <hwy/foreach_target.h>
//
#include "kernels/lane_sums-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gradflow {
namespace HWY_NAMESPACE {
namespace {

HWY_INLINE Vector all(float value) { return hn::Set(Tag(), value); }

/// clip·gradient + l2·w
HWY_INLINE Vector decayed(const UpdateConstants& c, Vector gradient, Vector w) {
  return hn::Add(hn::Mul(gradient, all(c.clip)), hn::Mul(all(c.l2), w));
}

/// Tensors are short and there are four streams: the processor's own prefetcher begins anew at every page. What is
/// fetched past the end of a tensor is the next one's; an address that does not exist does no harm.
template <class... Streams>
HWY_INLINE void fetch_ahead(std::size_t i, Streams... from) {
  constexpr std::size_t distance = 512;
  (__builtin_prefetch(from + i + distance), ...);
}

struct Sums {
  LaneSums before, after, change;
  UpdateSquares totals() const { return {before.total(), after.total(), change.total()}; }
};

/// Writes kept·w − rate·direction and measures what that changed.
template <class Access>
HWY_INLINE void step(const UpdateConstants& c, std::size_t i, Access access, Vector before, Vector direction, float* w,
                     Sums& sums) {
  const Vector after = hn::Sub(hn::Mul(before, all(c.kept)), hn::Mul(all(c.rate), direction));
  access.store(after, w + i);
  sums.before.add_squares(i, access.only(before));
  sums.after.add_squares(i, access.only(after));
  sums.change.add_squares(i, access.only(hn::Sub(after, before)));
}

UpdateSquares AdamUpdate(const UpdateConstants& c, std::size_t count, const float* gradient, float* w, float* m,
                         float* v) {
  Sums sums;
  for_each_vector(count, [&](std::size_t i, auto access) HWY_ATTR {
    fetch_ahead(i, gradient, w, m, v);
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
    fetch_ahead(i, gradient, w, m);
    const Vector before = access.load(w + i);
    const Vector first =
        hn::Add(hn::Mul(all(c.momentum), access.load(m + i)), decayed(c, access.load(gradient + i), before));
    access.store(first, m + i);
    step(c, i, access, before, first, w, sums);
  });
  return sums.totals();
}

UpdateSquares PlainSgdUpdate(const UpdateConstants& c, std::size_t count, const float* gradient, float* w) {
  Sums sums;
  for_each_vector(count, [&](std::size_t i, auto access) HWY_ATTR {
    fetch_ahead(i, gradient, w);
    const Vector before = access.load(w + i);
    step(c, i, access, before, decayed(c, access.load(gradient + i), before), w, sums);
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
HWY_EXPORT(PlainSgdUpdate);

UpdateSquares adam_update(const UpdateConstants& constants, std::size_t count, const float* gradient, float* w,
                          float* m, float* v) {
  return HWY_DYNAMIC_DISPATCH(AdamUpdate)(constants, count, gradient, w, m, v);
}

UpdateSquares sgd_update(const UpdateConstants& constants, std::size_t count, const float* gradient, float* w,
                         float* m) {
  if (m == nullptr) return HWY_DYNAMIC_DISPATCH(PlainSgdUpdate)(constants, count, gradient, w);
  return HWY_DYNAMIC_DISPATCH(SgdUpdate)(constants, count, gradient, w, m);
}

}  // namespace gradflow
#endif
