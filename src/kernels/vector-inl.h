// Included once for each instruction set, inside files that include <hwy/foreach_target.h>: what all kernels share.

#if defined(GRADFLOW_KERNELS_VECTOR_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef GRADFLOW_KERNELS_VECTOR_INL_H
#undef GRADFLOW_KERNELS_VECTOR_INL_H
#else
#define GRADFLOW_KERNELS_VECTOR_INL_H
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <cstddef>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace gradflow {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// The widest vector of floats that the instruction set has, at most 16 lanes.
using Tag = hn::CappedTag<float, 16>;
using Vector = hn::Vec<Tag>;
constexpr std::size_t lane_count = hn::MaxLanes(Tag());
/// Vectors that the processor has names for.
#if (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3) || HWY_ARCH_ARM_A64
constexpr std::size_t registers = 32;
#else
constexpr std::size_t registers = 16;
#endif

/// How a whole vector is read and written.
struct Whole {
  HWY_INLINE Vector load(const float* from) const { return hn::LoadU(Tag(), from); }
  HWY_INLINE void store(Vector v, float* to) const { hn::StoreU(v, Tag(), to); }
  /// v where there are elements, 0 or `filler` elsewhere.
  HWY_INLINE Vector only(Vector v) const { return v; }
  HWY_INLINE Vector filled(Vector v, Vector) const { return v; }
};

/// How the first `count` lanes of a vector are, at the end of a row: what lies behind is neither read nor written.
struct Part {
  std::size_t count;

  HWY_INLINE Vector load(const float* from) const {
#if HWY_MEM_OPS_MIGHT_FAULT
    alignas(64) float lanes[lane_count] = {};
    std::memcpy(lanes, from, count * sizeof(float));
    return hn::Load(Tag(), lanes);
#else
    return hn::MaskedLoad(hn::FirstN(Tag(), count), Tag(), from);
#endif
  }
  HWY_INLINE void store(Vector v, float* to) const {
#if HWY_MEM_OPS_MIGHT_FAULT
    alignas(64) float lanes[lane_count];
    hn::Store(v, Tag(), lanes);
    std::memcpy(to, lanes, count * sizeof(float));
#else
    hn::BlendedStore(v, hn::FirstN(Tag(), count), Tag(), to);
#endif
  }
  HWY_INLINE Vector only(Vector v) const { return hn::IfThenElseZero(hn::FirstN(Tag(), count), v); }
  HWY_INLINE Vector filled(Vector v, Vector filler) const {
    return hn::IfThenElse(hn::FirstN(Tag(), count), v, filler);
  }
};

/// Calls body(i, access) for each vector of a row of `width` elements, i its first element.
template <class Body>
HWY_INLINE void for_each_vector(std::size_t width, const Body& body) {
  std::size_t i = 0;
  for (; i + lane_count <= width; i += lane_count) body(i, Whole{});
  if (i < width) body(i, Part{width - i});
}

HWY_INLINE float total(Vector v) { return hn::GetLane(hn::SumOfLanes(Tag(), v)); }

/// x rounded to an integer, |x| < 2^22: as a float, and in the low bits of an integer.
struct Rounded {
  Vector whole;
  hn::Vec<hn::RebindToSigned<Tag>> bits;
};
HWY_INLINE Rounded rounded(Vector x) {
  const Tag d;
  // A float this large has no bits behind the point: the addition rounds x and leaves it as an integer in the low bits.
  const Vector rounder = hn::Set(d, 12582912.0f);  // 1.5·2^23
  const Vector sum = hn::Add(x, rounder);
  return {hn::Sub(sum, rounder), hn::BitCast(hn::RebindToSigned<Tag>(), sum)};
}

/// 2^x, relative error 8e-8; 2^-126 below -126, where nothing here tells it from 0. nan stays nan.
HWY_INLINE Vector exp2(Vector x) {
  const Tag d;
  const hn::RebindToSigned<Tag> integers;
  const Vector lowest = hn::Set(d, -126.0f);
  x = hn::IfThenElse(hn::Lt(x, lowest), lowest, x);
  const Rounded nearest = rounded(x);
  const Vector r = hn::Sub(x, nearest.whole);  // in [-1/2, 1/2]
  // Fitted for the least relative error.
  Vector p = hn::Set(d, 1.5345811e-4f);
  p = hn::MulAdd(p, r, hn::Set(d, 1.33999309e-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 9.61848907e-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 5.55032864e-2f));
  p = hn::MulAdd(p, r, hn::Set(d, 2.40226462e-1f));
  p = hn::MulAdd(p, r, hn::Set(d, 6.93147182e-1f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f));
  const auto exponent = hn::ShiftLeft<23>(hn::Add(nearest.bits, hn::Set(integers, 127)));
  return hn::Mul(p, hn::BitCast(d, exponent));
}

}  // namespace HWY_NAMESPACE
}  // namespace gradflow
HWY_AFTER_NAMESPACE();

#endif
