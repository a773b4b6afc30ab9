#include "kernels/activation.h"

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/activation.cpp"
#include <hwy/foreach_target.h>
//
#include <algorithm>

#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gradflow {
namespace HWY_NAMESPACE {
namespace {

/// c₀ + c₁·u + … + c₇·u⁷.
HWY_INLINE Vector polynomial(Vector u, const float (&c)[8]) {
  const Tag d;
  Vector p = hn::Set(d, c[7]);
  for (int k = 6; k >= 0; --k) p = hn::MulAdd(p, u, hn::Set(d, c[k]));
  return p;
}

// Φ(x) − ½ = x·P(x²)/Q(x²) and gelu'(x) − ½ = x·R(x²)/Q(x²): both are odd, and one division serves both. Fitted for
// |x| ≤ 5.5 by weighted least squares on the two functions together; the errors, 1.7e-7, are those of float32
// arithmetic. Beyond, both are ±½ to within 5e-7. It takes about half the time of exp in a formula for erf.
constexpr float last_fitted = 5.5f;
constexpr float p[8] = {0.398942292f,    0.0478278771f,   0.00632559555f,  0.000380548998f,
                        1.85427107e-05f, 5.52667586e-07f, 7.79306486e-09f, 1.50676104e-11f};
constexpr float r[8] = {0.797884583f,    -0.0373247899f, 0.0144390268f,  -6.59013822e-05f,
                        3.38248465e-05f, 2.282992e-07f,  1.1731446e-08f, -5.95109378e-12f};
constexpr float q[8] = {
    1.0f,           0.286553741f, 0.0386142395f, 0.00320246513f, 0.000178117945f, 6.76160698e-06f, 1.52401299e-07f,
    1.00591957e-09f};

/// a/b for b ≥ 1, to the last bit or two. The divider of AVX-512 takes 16 cycles a vector, the estimate and one step of
/// Newton's method three; on narrower vectors division is as fast.
HWY_INLINE Vector quotient(Vector a, Vector b) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
  const Vector estimate = hn::ApproximateReciprocal(b);
  return hn::Mul(a, hn::Mul(estimate, hn::NegMulAdd(b, estimate, hn::Set(Tag(), 2.0f))));
#else
  return hn::Div(a, b);
#endif
}

/// ½ + odd, where odd is ½ with the sign of x beyond the fitted range; nan stays nan.
HWY_INLINE Vector half_plus(Vector odd, Vector x) {
  const Tag d;
  const Vector half = hn::Set(d, 0.5f);
  const auto beyond = hn::Gt(hn::Abs(x), hn::Set(d, last_fitted));
  return hn::Add(half, hn::IfThenElse(beyond, hn::CopySign(half, x), odd));
}

struct Gelu {
  HWY_INLINE Vector value(Vector x) const {
    const Vector u = hn::Mul(x, x);
    return hn::Mul(x, half_plus(quotient(hn::Mul(x, polynomial(u, p)), polynomial(u, q)), x));
  }
  HWY_INLINE Vector value(Vector x, Vector& derivative) const {
    const Vector u = hn::Mul(x, x), factor = quotient(x, polynomial(u, q));
    derivative = half_plus(hn::Mul(factor, polynomial(u, r)), x);
    return hn::Mul(x, half_plus(hn::Mul(factor, polynomial(u, p)), x));
  }
};

/// max(x, 0), written so that nan stays nan.
struct Relu {
  HWY_INLINE Vector value(Vector x) const {
    const Vector zero = hn::Zero(Tag());
    return hn::IfThenElse(hn::Lt(x, zero), zero, x);
  }
  HWY_INLINE Vector value(Vector x, Vector& derivative) const {
    const Tag d;
    derivative = hn::IfThenElseZero(hn::Gt(x, hn::Zero(d)), hn::Set(d, 1.0f));
    return value(x);
  }
};

/// Rows taken together, so that a vector of the bias and of its gradient serves several of them.
constexpr std::size_t rows_together = 8;

template <class Function>
void forward(const Function& function, std::size_t rows, std::size_t width, const float* x, const float* bias, float* y,
             std::size_t y_step) {
  const Tag d;
  for (std::size_t first = 0; first < rows; first += rows_together) {
    const std::size_t end = std::min(rows, first + rows_together);
    for_each_vector(width, [&](std::size_t i, auto access) HWY_ATTR {
      const Vector b = bias != nullptr ? access.load(bias + i) : hn::Zero(d);
      for (std::size_t row = first; row < end; ++row) {
        const std::size_t at = row * width + i;
        access.store(function.value(hn::Add(access.load(x + at), b)), y + row * y_step + i);
      }
    });
  }
}

template <class Function>
void backward(const Function& function, std::size_t rows, std::size_t width, const float* x, const float* bias,
              float* y, float* gradient, std::size_t y_step, float* bias_gradient) {
  const Tag d;
  for (std::size_t first = 0; first < rows; first += rows_together) {
    const std::size_t end = std::min(rows, first + rows_together);
    for_each_vector(width, [&](std::size_t i, auto access) HWY_ATTR {
      const Vector b = bias != nullptr ? access.load(bias + i) : hn::Zero(d);
      Vector sum = hn::Zero(d);
      for (std::size_t row = first; row < end; ++row) {
        const std::size_t at = row * width + i;
        // Kept since the forward pass, in a cache further out.
        hwy::Prefetch(x + at + rows_together * width);
        const std::size_t place = row * y_step + i;
        Vector derivative;
        access.store(function.value(hn::Add(access.load(x + at), b), derivative), y + place);
        const Vector g = hn::Mul(access.load(gradient + place), derivative);
        access.store(g, gradient + place);
        sum = hn::Add(sum, g);
      }
      if (bias_gradient != nullptr) access.store(hn::Add(access.load(bias_gradient + i), sum), bias_gradient + i);
    });
  }
}

void ActivationForward(Activation activation, std::size_t rows, std::size_t width, const float* x, const float* bias,
                       float* y, std::size_t y_step) {
  if (activation == Activation::gelu)
    forward(Gelu{}, rows, width, x, bias, y, y_step);
  else
    forward(Relu{}, rows, width, x, bias, y, y_step);
}

void ActivationBackward(Activation activation, std::size_t rows, std::size_t width, const float* x, const float* bias,
                        float* y, float* gradient, std::size_t y_step, float* bias_gradient) {
  if (activation == Activation::gelu)
    backward(Gelu{}, rows, width, x, bias, y, gradient, y_step, bias_gradient);
  else
    backward(Relu{}, rows, width, x, bias, y, gradient, y_step, bias_gradient);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace gradflow
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradflow {

HWY_EXPORT(ActivationForward);
HWY_EXPORT(ActivationBackward);

void activation_forward(Activation activation, std::size_t rows, std::size_t width, const float* x, const float* bias,
                        float* y, std::size_t y_step) {
  HWY_DYNAMIC_DISPATCH(ActivationForward)(activation, rows, width, x, bias, y, y_step);
}

void activation_backward(Activation activation, std::size_t rows, std::size_t width, const float* x, const float* bias,
                         float* y, float* gradient, std::size_t y_step, float* bias_gradient) {
  HWY_DYNAMIC_DISPATCH(ActivationBackward)(activation, rows, width, x, bias, y, gradient, y_step, bias_gradient);
}

}  // namespace gradflow
#endif
