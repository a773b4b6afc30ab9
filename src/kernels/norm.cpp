#include "kernels/norm.h"

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/norm.cpp"
#include <hwy/foreach_target.h>
//
#include <cmath>

#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gradflow {
namespace HWY_NAMESPACE {
namespace {

HWY_INLINE void normalize_row(const NormShape& shape, const float* x, float mean, float inverse, const float* gain,
                              const float* bias, float* y) {
  const Tag d;
  const Vector means = hn::Set(d, mean), factor = hn::Set(d, inverse), scale = hn::Set(d, shape.scale);
  for_each_vector(shape.width, [&](std::size_t i, auto access) HWY_ATTR {
    Vector v = hn::Mul(hn::Mul(hn::Sub(access.load(x + i), means), factor), access.load(gain + i));
    if (bias != nullptr) v = hn::Add(v, access.load(bias + i));
    access.store(hn::Mul(v, scale), y + i);
  });
}

void NormForward(const NormShape& shape, const float* x, const float* gain, const float* bias, float* y,
                 float* statistics) {
  const Tag d;
  const float share = 1 / static_cast<float>(shape.width);
  for (std::size_t r = 0; r < shape.rows; ++r, x += shape.width, y += shape.width, statistics += 2) {
    float mean = 0;
    if (shape.centred) {
      Vector sum = hn::Zero(d);
      for_each_vector(shape.width,
                      [&](std::size_t i, auto access) HWY_ATTR { sum = hn::Add(sum, access.load(x + i)); });
      mean = total(sum) * share;
    }
    // Around the mean, not Σx² − n·mean², which loses everything where the mean is large.
    const Vector means = hn::Set(d, mean);
    Vector squares = hn::Zero(d);
    for_each_vector(shape.width, [&](std::size_t i, auto access) HWY_ATTR {
      const Vector deviation = access.only(hn::Sub(access.load(x + i), means));
      squares = hn::MulAdd(deviation, deviation, squares);
    });
    const float inverse = 1 / std::sqrt(total(squares) * share + shape.epsilon);
    statistics[0] = mean;
    statistics[1] = inverse;
    normalize_row(shape, x, mean, inverse, gain, bias, y);
  }
}

void NormAgain(const NormShape& shape, const float* x, const float* statistics, const float* gain, const float* bias,
               float* y) {
  for (std::size_t r = 0; r < shape.rows; ++r, x += shape.width, y += shape.width, statistics += 2)
    normalize_row(shape, x, statistics[0], statistics[1], gain, bias, y);
}

/// With x̂ = (x − mean)·r and e = dy·gain: dx = r·(e − mean(e) − x̂·mean(e·x̂)), without mean(e) for RMSNorm.
void NormBackward(const NormShape& shape, const float* dy, const float* x, const float* statistics, const float* gain,
                  float keep, float* dx, float* gain_gradient, float* bias_gradient) {
  const Tag d;
  const float share = 1 / static_cast<float>(shape.width);
  const Vector scale = hn::Set(d, shape.scale), kept = hn::Set(d, keep);
  for (std::size_t r = 0; r < shape.rows;
       ++r, x += shape.width, dy += shape.width, dx += shape.width, statistics += 2) {
    const Vector mean = hn::Set(d, statistics[0]), inverse = hn::Set(d, statistics[1]);
    Vector sum = hn::Zero(d), dot = hn::Zero(d);
    for_each_vector(shape.width, [&](std::size_t i, auto access) HWY_ATTR {
      const Vector normed = hn::Mul(hn::Sub(access.load(x + i), mean), inverse);
      const Vector g = hn::Mul(access.load(dy + i), scale);
      access.store(hn::MulAdd(g, normed, access.load(gain_gradient + i)), gain_gradient + i);
      if (bias_gradient != nullptr) access.store(hn::Add(g, access.load(bias_gradient + i)), bias_gradient + i);
      const Vector e = hn::Mul(g, access.load(gain + i));
      sum = hn::Add(sum, e);
      dot = hn::MulAdd(e, normed, dot);
    });
    const Vector mean_e = hn::Set(d, shape.centred ? total(sum) * share : 0);
    const Vector mean_dot = hn::Set(d, total(dot) * share);
    for_each_vector(shape.width, [&](std::size_t i, auto access) HWY_ATTR {
      const Vector normed = hn::Mul(hn::Sub(access.load(x + i), mean), inverse);
      const Vector e = hn::Mul(hn::Mul(access.load(dy + i), scale), access.load(gain + i));
      const Vector own = hn::Mul(hn::NegMulAdd(normed, mean_dot, hn::Sub(e, mean_e)), inverse);
      access.store(keep == 0 ? own : hn::MulAdd(kept, access.load(dx + i), own), dx + i);
    });
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace gradflow
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradflow {

HWY_EXPORT(NormForward);
HWY_EXPORT(NormAgain);
HWY_EXPORT(NormBackward);

void norm_forward(const NormShape& shape, const float* x, const float* gain, const float* bias, float* y,
                  float* statistics) {
  HWY_DYNAMIC_DISPATCH(NormForward)(shape, x, gain, bias, y, statistics);
}

void norm_again(const NormShape& shape, const float* x, const float* statistics, const float* gain, const float* bias,
                float* y) {
  HWY_DYNAMIC_DISPATCH(NormAgain)(shape, x, statistics, gain, bias, y);
}

void norm_backward(const NormShape& shape, const float* dy, const float* x, const float* statistics, const float* gain,
                   float keep, float* dx, float* gain_gradient, float* bias_gradient) {
  HWY_DYNAMIC_DISPATCH(NormBackward)
  (shape, dy, x, statistics, gain, keep, dx, gain_gradient, bias_gradient);
}

}  // namespace gradflow
#endif
