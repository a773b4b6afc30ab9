#include "kernels/activation.h"

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/activation.cpp"
#include <hwy/foreach_target.h>
//
#include <algorithm>

#include "kernels/gelu_expansions.h"
#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gradflow {
namespace HWY_NAMESPACE {
namespace {

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3  // vectors of 512 bits

/// By expansions of Φ − ½ around 32 centres (`gelu_expansions`), each coefficient's 32 values in two registers:
/// Φ(|x|) − ½ = P(r), and its derivative in passing, φ(|x|) = centres_per_unit·P'(r). About three quarters of the
/// instructions of a quotient of polynomials; errors at most 1e-7·max(1, |x|) in gelu and 1.5e-7 in gelu'.
class Gelu {
 public:
  Gelu() {
    const GeluExpansions& expansions = gelu_expansions();
    for (std::size_t k = 0; k < gelu_terms; ++k) {
      low_[k] = hn::LoadU(Tag(), expansions[k].data());
      high_[k] = hn::LoadU(Tag(), expansions[k].data() + lane_count);
    }
  }

  HWY_INLINE Vector value(Vector x) const {
    const Place at = place(x);
    Vector p = coefficient(at, gelu_terms - 1);
    for (std::size_t k = gelu_terms - 1; k-- > 0;) p = hn::MulAdd(p, at.r, coefficient(at, k));
    return product(x, p);
  }
  HWY_INLINE Vector value(Vector x, Vector& derivative) const {
    const Place at = place(x);
    Vector slope = coefficient(at, gelu_terms - 1);
    Vector p = hn::MulAdd(slope, at.r, coefficient(at, gelu_terms - 2));
    for (std::size_t k = gelu_terms - 2; k-- > 0;) {
      slope = hn::MulAdd(slope, at.r, p);
      p = hn::MulAdd(p, at.r, coefficient(at, k));
    }
    // gelu'(x) = Φ(x) + x·φ(x), and |x| = t/centres_per_unit; beyond the last centre t is cut, but the slope is 0.
    derivative = hn::Add(hn::Set(Tag(), 0.5f), hn::CopySign(hn::MulAdd(at.t, slope, p), x));
    return product(x, p);
  }

 private:
  /// t = |x|·centres_per_unit, at most the last centre; r = t − the centre next to it, in [−½, ½].
  struct Place {
    Vector t, r;
    hn::Vec<hn::RebindToSigned<Tag>> centre;  // in the five low bits
  };

  static HWY_INLINE Place place(Vector x) {
    const Tag d;
    // The minimum is its second operand where one is nan, which stays.
    const Vector t = hn::Min(hn::Set(d, gelu_last_centre), hn::Mul(hn::Abs(x), hn::Set(d, gelu_centres_per_unit)));
    const Rounded nearest = rounded(t);
    return {t, hn::Sub(t, nearest.whole), nearest.bits};
  }
  HWY_INLINE Vector coefficient(const Place& at, std::size_t k) const {
    // Of an index only the five low bits count. TwoTablesLookupLanes, of Highway since 1.0.5, wants no others set.
    return Vector{_mm512_permutex2var_ps(low_[k].raw, at.centre.raw, high_[k].raw)};
  }
  /// x·Φ(x); of finite x exactly 0 or x at the last centre, where p = ½.
  static HWY_INLINE Vector product(Vector x, Vector p) {
    return hn::MulAdd(hn::Abs(x), p, hn::Mul(hn::Set(Tag(), 0.5f), x));
  }

  static_assert(gelu_centres == 2 * lane_count);
  Vector low_[gelu_terms], high_[gelu_terms];
};

#else

/// c₀ + c₁·u + … + c₇·u⁷.
HWY_INLINE Vector polynomial(Vector u, const float (&c)[8]) {
  const Tag d;
  Vector p = hn::Set(d, c[7]);
  for (int k = 6; k >= 0; --k) p = hn::MulAdd(p, u, hn::Set(d, c[k]));
  return p;
}

// Φ(x) − ½ = x·P(x²)/Q(x²) and gelu'(x) − ½ = x·R(x²)/Q(x²): both are odd, and one division serves both. Fitted for
// |x| ≤ 5.5 by weighted least squares on the two functions together; the errors, at most 2.3e-7·max(1, |x|) in gelu,
// are those of float32 arithmetic. Beyond, both are ±½ to within 6e-7. It takes about half the time of exp in a formula
// for erf.
constexpr float last_fitted = 5.5f;
constexpr float p[8] = {0.398942292f,    0.0478278771f,   0.00632559555f,  0.000380548998f,
                        1.85427107e-05f, 5.52667586e-07f, 7.79306486e-09f, 1.50676104e-11f};
constexpr float r[8] = {0.797884583f,    -0.0373247899f, 0.0144390268f,  -6.59013822e-05f,
                        3.38248465e-05f, 2.282992e-07f,  1.1731446e-08f, -5.95109378e-12f};
constexpr float q[8] = {
    1.0f,           0.286553741f, 0.0386142395f, 0.00320246513f, 0.000178117945f, 6.76160698e-06f, 1.52401299e-07f,
    1.00591957e-09f};

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
    return hn::Mul(x, half_plus(hn::Div(hn::Mul(x, polynomial(u, p)), polynomial(u, q)), x));
  }
  HWY_INLINE Vector value(Vector x, Vector& derivative) const {
    const Vector u = hn::Mul(x, x), factor = hn::Div(x, polynomial(u, q));
    derivative = half_plus(hn::Mul(factor, polynomial(u, r)), x);
    return hn::Mul(x, half_plus(hn::Mul(factor, polynomial(u, p)), x));
  }
};

#endif

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
