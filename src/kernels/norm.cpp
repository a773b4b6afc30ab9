#include "kernels/norm.h"

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/norm.cpp"
#include <hwy/foreach_target.h>
//
#include <algorithm>
#include <type_traits>

#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gradflow {
namespace HWY_NAMESPACE {
namespace {

/// One number for each row of a group: rows are taken four together.
using RowTag = hn::CappedTag<float, 4>;
using RowVector = hn::Vec<RowTag>;

/// Rows are short, a few vectors, so that summing the lanes, the root and the division would cost more than the rest.
/// The rows of a group share these, and each load of the gain and of the bias.
constexpr std::size_t rows_together = hn::MaxLanes(RowTag());

/// Each step is taken for a whole block of rows before the next step: in a single group it would wait for the sums of
/// the step before. The rows of a block stay in the nearest cache meanwhile.
constexpr std::size_t block_rows = 16;

/// Calls body(first, rows) for each block.
template <class Body>
HWY_INLINE void for_each_block(std::size_t rows, const Body& body) {
  for (std::size_t first = 0; first < rows; first += block_rows) body(first, std::min(block_rows, rows - first));
}

/// Calls body(first, count) for groups of rows_together rows, then for each row that is left, a group of one; count is
/// an std::integral_constant. A row gets the same bits in either.
template <class Body>
HWY_INLINE void for_each_group(std::size_t rows, const Body& body) {
  std::size_t first = 0;
  for (; first + rows_together <= rows; first += rows_together)
    body(first, std::integral_constant<std::size_t, rows_together>());
  for (; first < rows; ++first) body(first, std::integral_constant<std::size_t, 1>());
}

/// A vector for each of the `count` rows of a group; zero for those that it lacks.
template <std::size_t count>
struct Group {
  Vector row[rows_together];

  HWY_INLINE Group() {
    for (Vector& v : row) v = hn::Zero(Tag());
  }
  /// values[step·k] in every lane of row k.
  HWY_INLINE Group(const float* values, std::size_t step) : Group() {
    for (std::size_t k = 0; k < count; ++k) row[k] = hn::Set(Tag(), values[step * k]);
  }
};

#if HWY_TARGET == HWY_SCALAR
template <std::size_t count>
HWY_INLINE RowVector totals(const Group<count>& group) {
  return group.row[0];
}
#else
template <class D>
HWY_INLINE RowVector add_blocks(D, hn::Vec<D> v) {
  if constexpr (hn::MaxLanes(D()) > rows_together) {
    const hn::Half<D> half;
    return add_blocks(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  } else {
    return v;
  }
}

/// The sum of the lanes of each row. Adding the interleaved vectors of two rows halves both at once.
template <std::size_t count>
HWY_INLINE RowVector totals(const Group<count>& group) {
  const Tag d;
  const hn::RepartitionToWide<Tag> pairs;
  const auto fold = [&](Vector a, Vector b) HWY_ATTR {
    return hn::BitCast(pairs, hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b)));
  };
  const auto ab = fold(group.row[0], group.row[1]), cd = fold(group.row[2], group.row[3]);
  return add_blocks(d, hn::Add(hn::BitCast(d, hn::InterleaveLower(pairs, ab, cd)),
                               hn::BitCast(d, hn::InterleaveUpper(pairs, ab, cd))));
}
#endif

/// Row k has from[2·k] in `a` and from[2·k + 1] in `b`.
template <std::size_t count>
HWY_INLINE void load_pairs(const float* from, RowVector& a, RowVector& b) {
  if constexpr (count == rows_together) {
    hn::LoadInterleaved2(RowTag(), from, a, b);
  } else {
    a = hn::Set(RowTag(), from[0]);
    b = hn::Set(RowTag(), from[1]);
  }
}

template <std::size_t count>
HWY_INLINE void store_pairs(RowVector a, RowVector b, float* to) {
  if constexpr (count == rows_together) {
    hn::StoreInterleaved2(a, b, RowTag(), to);
  } else {
    to[0] = hn::GetLane(a);
    to[1] = hn::GetLane(b);
  }
}

HWY_INLINE RowVector share_of(std::size_t width) { return hn::Set(RowTag(), 1 / static_cast<float>(width)); }

/// Of each row, beside a zero where the inverse will stand.
HWY_INLINE void compute_means(const NormShape& shape, std::size_t rows, const float* x, float* statistics) {
  const std::size_t width = shape.width;
  const RowVector share = share_of(width);
  for_each_group(rows, [&](std::size_t first, auto count) HWY_ATTR {
    Group<count> sum;
    if (shape.centred) {
      for_each_vector(width, [&](std::size_t i, auto access) HWY_ATTR {
        for (std::size_t k = 0; k < count; ++k)
          sum.row[k] = hn::Add(sum.row[k], access.load(x + (first + k) * width + i));
      });
    }
    store_pairs<count>(hn::Mul(totals(sum), share), hn::Zero(RowTag()), statistics + 2 * first);
  });
}

/// Around the mean, not Σx² − n·mean², which loses everything where the mean is large.
HWY_INLINE void compute_inverses(const NormShape& shape, std::size_t rows, const float* x, float* statistics) {
  const RowTag of_rows;
  const std::size_t width = shape.width;
  const RowVector share = share_of(width), epsilon = hn::Set(of_rows, shape.epsilon);
  for_each_group(rows, [&](std::size_t first, auto count) HWY_ATTR {
    const Group<count> mean(statistics + 2 * first, 2);
    Group<count> squares;
    for_each_vector(width, [&](std::size_t i, auto access) HWY_ATTR {
      for (std::size_t k = 0; k < count; ++k) {
        const Vector deviation = access.only(hn::Sub(access.load(x + (first + k) * width + i), mean.row[k]));
        squares.row[k] = hn::MulAdd(deviation, deviation, squares.row[k]);
      }
    });
    const RowVector root = hn::Sqrt(hn::Add(hn::Mul(totals(squares), share), epsilon));
    RowVector means, unset;
    load_pairs<count>(statistics + 2 * first, means, unset);
    store_pairs<count>(means, hn::Div(hn::Set(of_rows, 1.0f), root), statistics + 2 * first);
  });
}

HWY_INLINE void normalize(const NormShape& shape, std::size_t rows, const float* x, const float* statistics,
                          const float* gain, const float* bias, float* y) {
  const Tag d;
  const std::size_t width = shape.width;
  const Vector scale = hn::Set(d, shape.scale);
  for_each_group(rows, [&](std::size_t first, auto count) HWY_ATTR {
    const Group<count> mean(statistics + 2 * first, 2), inverse(statistics + 2 * first + 1, 2);
    for_each_vector(width, [&](std::size_t i, auto access) HWY_ATTR {
      const Vector factor = hn::Mul(access.load(gain + i), scale);
      const Vector term = bias != nullptr ? hn::Mul(access.load(bias + i), scale) : hn::Zero(d);
      for (std::size_t k = 0; k < count; ++k) {
        const std::size_t at = (first + k) * width + i;
        const Vector normed = hn::Mul(hn::Sub(access.load(x + at), mean.row[k]), inverse.row[k]);
        access.store(hn::MulAdd(normed, factor, term), y + at);
      }
    });
  });
}

// The kernels are flattened because compilers keep the vectors of a group in registers only inside of its loop.

HWY_FLATTEN void NormForward(const NormShape& shape, const float* x, const float* gain, const float* bias, float* y,
                             float* statistics) {
  for_each_block(shape.rows, [&](std::size_t first, std::size_t rows) HWY_ATTR {
    const float* const from = x + first * shape.width;
    float* const kept = statistics + 2 * first;
    compute_means(shape, rows, from, kept);
    compute_inverses(shape, rows, from, kept);
    normalize(shape, rows, from, kept, gain, bias, y + first * shape.width);
  });
}

HWY_FLATTEN void NormAgain(const NormShape& shape, const float* x, const float* statistics, const float* gain,
                           const float* bias, float* y) {
  normalize(shape, shape.rows, x, statistics, gain, bias, y);
}

// Backward, with x̂ = (x − mean)·r and e = dy·gain: dx = r·(e − mean(e) − x̂·mean(e·x̂)), without mean(e) for RMSNorm.

/// Adds to the gradients of gain and bias. Leaves for each row mean(e), 0 for RMSNorm, and mean(e·x̂).
HWY_INLINE void compute_gradient_means(const NormShape& shape, std::size_t rows, const float* dy, const float* x,
                                       const float* statistics, const float* gain, float* gain_gradient,
                                       float* bias_gradient, float* means) {
  const Tag d;
  const std::size_t width = shape.width;
  const RowVector share = share_of(width);
  const Vector scale = hn::Set(d, shape.scale);
  for_each_group(rows, [&](std::size_t first, auto count) HWY_ATTR {
    const Group<count> mean(statistics + 2 * first, 2), inverse(statistics + 2 * first + 1, 2);
    Group<count> sum, dot;
    for_each_vector(width, [&](std::size_t i, auto access) HWY_ATTR {
      const Vector gains = access.load(gain + i);
      Vector of_gain = access.load(gain_gradient + i);
      Vector of_bias = bias_gradient != nullptr ? access.load(bias_gradient + i) : hn::Zero(d);
      for (std::size_t k = 0; k < count; ++k) {
        const std::size_t at = (first + k) * width + i;
        // x̂ first, which no deviation makes large: their product with a gradient can overflow.
        const Vector normed = hn::Mul(hn::Sub(access.load(x + at), mean.row[k]), inverse.row[k]);
        const Vector g = hn::Mul(access.load(dy + at), scale), product = hn::Mul(g, normed);
        of_gain = hn::Add(of_gain, product);
        of_bias = hn::Add(of_bias, g);
        sum.row[k] = hn::MulAdd(g, gains, sum.row[k]);
        dot.row[k] = hn::MulAdd(product, gains, dot.row[k]);
      }
      access.store(of_gain, gain_gradient + i);
      if (bias_gradient != nullptr) access.store(of_bias, bias_gradient + i);
    });
    const RowVector mean_e = shape.centred ? hn::Mul(totals(sum), share) : hn::Zero(RowTag());
    store_pairs<count>(mean_e, hn::Mul(totals(dot), share), means + 2 * first);
  });
}

HWY_INLINE void compute_gradient(const NormShape& shape, std::size_t rows, const float* dy, const float* x,
                                 const float* statistics, const float* gain, const float* means, float keep,
                                 float* dx) {
  const Tag d;
  const std::size_t width = shape.width;
  const Vector scale = hn::Set(d, shape.scale), kept = hn::Set(d, keep);
  const float* const before = keep != 0 ? dx : nullptr;
  for_each_group(rows, [&](std::size_t first, auto count) HWY_ATTR {
    const Group<count> mean(statistics + 2 * first, 2), inverse(statistics + 2 * first + 1, 2);
    const Group<count> mean_e(means + 2 * first, 2), mean_dot(means + 2 * first + 1, 2);
    for_each_vector(width, [&](std::size_t i, auto access) HWY_ATTR {
      const Vector factor = hn::Mul(access.load(gain + i), scale);
      for (std::size_t k = 0; k < count; ++k) {
        const std::size_t at = (first + k) * width + i;
        const Vector normed = hn::Mul(hn::Sub(access.load(x + at), mean.row[k]), inverse.row[k]);
        const Vector centred = hn::MulSub(access.load(dy + at), factor, mean_e.row[k]);
        Vector own = hn::Mul(hn::NegMulAdd(normed, mean_dot.row[k], centred), inverse.row[k]);
        if (before != nullptr) own = hn::MulAdd(kept, access.load(before + at), own);
        access.store(own, dx + at);
      }
    });
  });
}

HWY_FLATTEN void NormBackward(const NormShape& shape, const float* dy, const float* x, const float* statistics,
                              const float* gain, float keep, float* dx, float* gain_gradient, float* bias_gradient) {
  for_each_block(shape.rows, [&](std::size_t first, std::size_t rows) HWY_ATTR {
    const std::size_t at = first * shape.width;
    const float* const kept = statistics + 2 * first;
    float means[2 * block_rows];
    compute_gradient_means(shape, rows, dy + at, x + at, kept, gain, gain_gradient, bias_gradient, means);
    compute_gradient(shape, rows, dy + at, x + at, kept, gain, means, keep, dx + at);
  });
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
