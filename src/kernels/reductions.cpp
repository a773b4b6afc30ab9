#include "kernels/reductions.h"

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reductions.cpp"
#include <hwy/foreach_target.h>
//
#include <algorithm>
#include <cmath>

#include "kernels/lane_sums-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gradflow {
namespace HWY_NAMESPACE {
namespace {

HWY_INLINE Doubles load(const double* values) { return hn::LoadU(DoubleTag(), values); }
HWY_INLINE Doubles load(const float* values) {
  return hn::PromoteTo(DoubleTag(), hn::LoadU(hn::Rebind<float, DoubleTag>(), values));
}

/// Calls body(vector, x) for all elements, x each one less `offset`: those of lanes double_lanes·vector …. Lanes behind
/// the last element hold 0.
template <class T, class Body>
HWY_INLINE void for_each_lane(const T* values, std::size_t count, double offset, const Body& body) {
  const Doubles offsets = hn::Set(DoubleTag(), offset);
  std::size_t i = 0;
  for (; i + LaneSums::lanes <= count; i += LaneSums::lanes)
    for (std::size_t vector = 0; vector < LaneSums::vectors; ++vector)
      body(vector, hn::Sub(load(values + i + vector * double_lanes), offsets));
  if (i == count) return;
  alignas(64) double rest[LaneSums::lanes] = {};
  for (std::size_t k = 0; i < count; ++i, ++k) rest[k] = static_cast<double>(values[i]) - offset;
  for (std::size_t vector = 0; vector < LaneSums::vectors; ++vector) body(vector, load(rest + vector * double_lanes));
}

HWY_INLINE void add_square(LaneSums& sums, std::size_t vector, Doubles x, const float*) {
  sums.add_square_of_float(vector, x);
}
HWY_INLINE void add_square(LaneSums& sums, std::size_t vector, Doubles x, const double*) { sums.add_square(vector, x); }

template <class T>
HWY_INLINE double squares(const T* values, std::size_t count) {
  LaneSums sums;
  for_each_lane(values, count, 0, [&](std::size_t vector, Doubles x) HWY_ATTR { add_square(sums, vector, x, values); });
  return sums.total();
}

template <class T>
HWY_INLINE double row_sum(const T* row, std::size_t features) {
  LaneSums sums;
  for_each_lane(row, features, 0, [&](std::size_t vector, Doubles x) HWY_ATTR { sums.add(vector, x); });
  return sums.total();
}

/// Σ over rows and features of (x − the row's mean)².
template <class T>
double deviations(const T* values, std::size_t rows, std::size_t features, const bool* real) {
  LaneSums sums;
  for (std::size_t r = 0; r < rows; ++r, values += features) {
    if (real != nullptr && !real[r]) continue;
    const double mean = row_sum(values, features) / static_cast<double>(features);
    for_each_lane(values, features, mean, [&](std::size_t vector, Doubles x) HWY_ATTR { sums.add_square(vector, x); });
  }
  return sums.total();
}

template <class T>
HWY_INLINE RowSums all_rows(const T* values, std::size_t rows, std::size_t features, const bool* real) {
  RowSums sums;
  LaneSums square;
  double of_means = 0;  // Σ over rows of (Σ x)²
  const T* row = values;
  for (std::size_t r = 0; r < rows; ++r, row += features) {
    if (real != nullptr && !real[r]) continue;
    LaneSums own;
    for_each_lane(row, features, 0, [&](std::size_t vector, Doubles x) HWY_ATTR {
      own.add(vector, x);
      add_square(square, vector, x, values);
    });
    const double sum = own.total();
    sums.rows += 1;
    sums.sum += sum;
    of_means += sum * sum;
  }
  sums.squares = square.total();
  double deviation = sums.squares - of_means / static_cast<double>(features);
  // The difference loses as many digits as the means are larger than what is around them: past two, a second pass.
  constexpr double least_share = 0.01;
  if (!(deviation >= least_share * sums.squares)) deviation = deviations(values, rows, features, real);
  sums.variance_sum = deviation / static_cast<double>(features);
  return sums;
}

double SquaresOfFloats(const float* values, std::size_t count) { return squares(values, count); }
double SquaresOfDoubles(const double* values, std::size_t count) { return squares(values, count); }
RowSums RowsOfFloats(const float* values, std::size_t rows, std::size_t features, const bool* real) {
  return all_rows(values, rows, features, real);
}
RowSums RowsOfDoubles(const double* values, std::size_t rows, std::size_t features, const bool* real) {
  return all_rows(values, rows, features, real);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace gradflow
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradflow {
namespace {

template <class T>
std::int64_t nonfinite(const T* values, std::size_t count) {
  return std::count_if(values, values + count, [](T value) { return !std::isfinite(value); });
}

}  // namespace

HWY_EXPORT(SquaresOfFloats);
HWY_EXPORT(SquaresOfDoubles);
HWY_EXPORT(RowsOfFloats);
HWY_EXPORT(RowsOfDoubles);

double sum_of_squares(const float* values, std::size_t count) {
  return HWY_DYNAMIC_DISPATCH(SquaresOfFloats)(values, count);
}
double sum_of_squares(const double* values, std::size_t count) {
  return HWY_DYNAMIC_DISPATCH(SquaresOfDoubles)(values, count);
}
RowSums row_sums(const float* values, std::size_t rows, std::size_t features, const bool* real) {
  return HWY_DYNAMIC_DISPATCH(RowsOfFloats)(values, rows, features, real);
}
RowSums row_sums(const double* values, std::size_t rows, std::size_t features, const bool* real) {
  return HWY_DYNAMIC_DISPATCH(RowsOfDoubles)(values, rows, features, real);
}

std::int64_t count_nonfinite(const float* values, std::size_t count) { return nonfinite(values, count); }
std::int64_t count_nonfinite(const double* values, std::size_t count) { return nonfinite(values, count); }

}  // namespace gradflow
#endif
