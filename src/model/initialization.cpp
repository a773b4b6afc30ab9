#include "model/initialization.h"

#include <cmath>
#include <numbers>
#include <vector>

#include "core/philox.h"

namespace gradflow {
namespace {

/// Makes the shorter side of a row-major [rows, columns] matrix of independent normals orthonormal by modified
/// Gram-Schmidt, twice over for accuracy. In double and by hand, since a library's QR differs between machines.
void orthonormalize(std::vector<double>& matrix, std::int64_t rows, std::int64_t columns) {
  const bool by_row = rows <= columns;
  const std::int64_t vectors = by_row ? rows : columns, length = by_row ? columns : rows;
  const auto at = [&](std::int64_t vector, std::int64_t i) -> double& {
    return by_row ? matrix[static_cast<std::size_t>(vector * columns + i)]
                  : matrix[static_cast<std::size_t>(i * columns + vector)];
  };
  const auto dot = [&](std::int64_t a, std::int64_t b) {
    double sum = 0;
    for (std::int64_t i = 0; i < length; ++i) sum += at(a, i) * at(b, i);
    return sum;
  };
  for (std::int64_t v = 0; v < vectors; ++v) {
    for (int pass = 0; pass < 2; ++pass)
      for (std::int64_t u = 0; u < v; ++u) {
        const double projection = dot(v, u);
        for (std::int64_t i = 0; i < length; ++i) at(v, i) -= projection * at(u, i);
      }
    const double norm = std::sqrt(dot(v, v));
    for (std::int64_t i = 0; i < length; ++i) at(v, i) /= norm;
  }
}

std::vector<double> initial_values(const ParameterSpec& spec, std::uint64_t seed) {
  const auto size = static_cast<std::size_t>(spec.size());
  const Fill& fill = spec.fill;
  const RandomStream random(seed, "parameter/" + spec.name);
  std::vector<double> values(size, fill.offset);
  switch (fill.distribution) {
    case Distribution::constant: break;
    case Distribution::normal:
      if (fill.std != 0)
        for (std::size_t i = 0; i < size; ++i) values[i] += fill.std * random.normal(i);
      break;
    case Distribution::uniform:
      for (std::size_t i = 0; i < size; ++i) values[i] += fill.std * std::numbers::sqrt3 * (2 * random.uniform(i) - 1);
      break;
    case Distribution::orthogonal: {
      for (std::size_t i = 0; i < size; ++i) values[i] = random.normal(i);
      const std::int64_t rows = spec.shape.front();
      orthonormalize(values, rows, static_cast<std::int64_t>(size) / rows);
      for (double& value : values) value *= fill.std;
      break;
    }
    case Distribution::sinusoid: {
      const double phase = static_cast<double>(fnv1a32(spec.name) % 1000) * 0.01;
      for (std::size_t i = 0; i < size; ++i)
        values[i] = std::sin(1 + 0.7 * static_cast<double>(i) + phase) * fill.std + fill.offset;
      break;
    }
    case Distribution::two_identities: {
      const auto rows = static_cast<std::size_t>(spec.shape.at(0)),
                 columns = static_cast<std::size_t>(spec.shape.at(1));
      for (std::size_t i = 0; i < rows; ++i) values[i * columns + i] = values[i * columns + rows + i] = 1;
      break;
    }
  }
  return values;
}

}  // namespace

void initialize(const ParameterSpec& spec, std::uint64_t seed, const at::Tensor& target) {
  const std::vector<double> values = initial_values(spec, seed);
  if (target.scalar_type() == at::kDouble) {
    std::copy(values.begin(), values.end(), target.data_ptr<double>());
  } else {
    float* out = target.data_ptr<float>();
    for (std::size_t i = 0; i < values.size(); ++i) out[i] = static_cast<float>(values[i]);
  }
}

}  // namespace gradflow
