#include "measure/reductions.h"

#include <bit>
#include <cmath>
#include <cstring>

// Vectors pass only between functions that are inlined, so their calling convention does not matter.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace gradflow {
namespace {

constexpr std::size_t lanes = 8;
using Lanes [[gnu::vector_size(lanes * sizeof(double))]] = double;

[[gnu::always_inline]] inline double total(const Lanes& sums) {
  return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

[[gnu::always_inline]] inline Lanes load(const double* values) {
  Lanes loaded;
  std::memcpy(&loaded, values, sizeof loaded);
  return loaded;
}

[[gnu::always_inline]] inline Lanes load(const float* values) {
  using Floats [[gnu::vector_size(lanes * sizeof(float))]] = float;
  Floats loaded;
  std::memcpy(&loaded, values, sizeof loaded);
  return __builtin_convertvector(loaded, Lanes);
}

/// The last, incomplete group of lanes, filled up with `filler`.
template <class T>
[[gnu::always_inline]] inline Lanes load_part(const T* values, std::size_t count, double filler) {
  Lanes loaded;
  for (std::size_t k = 0; k < lanes; ++k) loaded[k] = k < count ? static_cast<double>(values[k]) : filler;
  return loaded;
}

template <class T>
[[gnu::always_inline]] inline double squares(const T* values, std::size_t count) {
  Lanes sums{};
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const Lanes x = load(values + i);
    sums += x * x;
  }
  if (i < count) {
    const Lanes x = load_part(values + i, count - i, 0);
    sums += x * x;
  }
  return total(sums);
}

/// Adds Σ x of the row to `sum`, x² and (x − the row's mean)² to the lanes, which are added up once for all rows.
template <class T>
[[gnu::always_inline]] inline void add_row(const T* row, std::size_t features, double& sum, Lanes& square,
                                           Lanes& deviation) {
  Lanes own{};
  std::size_t i = 0;
  for (; i + lanes <= features; i += lanes) {
    const Lanes x = load(row + i);
    own += x;
    square += x * x;
  }
  if (i < features) {
    const Lanes x = load_part(row + i, features - i, 0);
    own += x;
    square += x * x;
  }
  const double row_sum = total(own);
  const double mean = row_sum / static_cast<double>(features);
  // A second pass over the row, which is in cache: Σx² − n·mean² loses everything where the mean is large.
  for (i = 0; i + lanes <= features; i += lanes) {
    const Lanes x = load(row + i) - mean;
    deviation += x * x;
  }
  if (i < features) {
    const Lanes x = load_part(row + i, features - i, mean) - mean;
    deviation += x * x;
  }
  sum += row_sum;
}

template <class T>
[[gnu::always_inline]] inline RowSums all_rows(const T* values, std::size_t rows, std::size_t features,
                                               const bool* real) {
  RowSums sums;
  Lanes square{}, deviation{};
  for (std::size_t r = 0; r < rows; ++r)
    if (real == nullptr || real[r]) {
      add_row(values + r * features, features, sums.sum, square, deviation);
      sums.rows += 1;
    }
  sums.squares = total(square);
  sums.variance_sum = total(deviation) / static_cast<double>(features);
  return sums;
}

template <class T>
std::int64_t nonfinite(const T* values, std::size_t count) {
  std::int64_t found = 0;
  for (std::size_t i = 0; i < count; ++i) found += std::isfinite(values[i]) ? 0 : 1;
  return found;
}

}  // namespace

// One clone an instruction set, chosen when the program starts. The lanes fix the order of addition, so they agree.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)
#define GRADFLOW_PER_INSTRUCTION_SET [[gnu::target_clones("avx512f", "avx2", "default")]]
#else
#define GRADFLOW_PER_INSTRUCTION_SET
#endif

GRADFLOW_PER_INSTRUCTION_SET double sum_of_squares(const float* values, std::size_t count) {
  return squares(values, count);
}
GRADFLOW_PER_INSTRUCTION_SET double sum_of_squares(const double* values, std::size_t count) {
  return squares(values, count);
}
GRADFLOW_PER_INSTRUCTION_SET RowSums row_sums(const float* values, std::size_t rows, std::size_t features,
                                              const bool* real) {
  return all_rows(values, rows, features, real);
}
GRADFLOW_PER_INSTRUCTION_SET RowSums row_sums(const double* values, std::size_t rows, std::size_t features,
                                              const bool* real) {
  return all_rows(values, rows, features, real);
}

std::int64_t count_nonfinite(const float* values, std::size_t count) { return nonfinite(values, count); }
std::int64_t count_nonfinite(const double* values, std::size_t count) { return nonfinite(values, count); }

}  // namespace gradflow
