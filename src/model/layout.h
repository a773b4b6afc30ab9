#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"

namespace gradflow {

/// How a parameter is filled at the start.
enum class Distribution {
  constant,        ///< offset everywhere
  normal,          ///< offset + std·N(0, 1)
  uniform,         ///< offset + std·√3·U(−1, 1), so that `std` is the standard deviation here too
  orthogonal,      ///< orthonormal rows or columns, times `std`
  sinusoid,        ///< std·sin(1 + 0.7·i + (fnv1a32(name) mod 1000)·0.01) + offset, for comparing implementations
  two_identities,  ///< [I I]: `concat` starts as the plain sum
};
inline constexpr std::array<std::string_view, 6> names_of(Distribution) {
  return {"constant", "normal", "uniform", "orthogonal", "sinusoid", "two_identities"};
}

struct Fill {
  Distribution distribution = Distribution::constant;
  double std = 0;  ///< for `sinusoid` and `orthogonal` the amplitude and the factor
  double offset = 0;
};

/// One named parameter: its canonical name, shape (row-major) and initial distribution.
struct ParameterSpec {
  std::string name;
  std::vector<std::int64_t> shape;
  Fill fill;

  std::int64_t size() const;
  /// Weight decay acts on matrices, convolutions and embeddings, not on biases, gains and scalars.
  bool decays() const { return shape.size() >= 2; }
};

/// Not trained, not counted: BatchNorm's running statistics.
struct BufferSpec {
  std::string name;
  std::int64_t size = 0;
  double start = 0;
};

/// One row of layers.csv and one slice of the flat store: embedding, a sub-layer, final norm, head.
struct SegmentSpec {
  std::int64_t layer = 0;                 ///< 0 embedding, 1…N blocks, N+1 what follows
  std::string sublayer;                   ///< embedding, attention, ffn, stem, dense, conv, final_norm, head
  std::vector<ParameterSpec> parameters;  ///< in the order in which the forward pass meets them
  std::vector<BufferSpec> buffers;
};

/// Everything that will be allocated, from the configuration alone: no LibTorch, nothing random. The store, `describe`
/// and config.json's derived numbers are made from it.
struct Layout {
  std::vector<SegmentSpec> segments;  ///< in the order of the forward pass

  std::int64_t parameter_count() const;
  /// Whether segment `s` is the first of its layer: attention of a block, but not its feed-forward.
  bool starts_layer(std::size_t s) const { return s == 0 || segments[s].layer != segments[s - 1].layer; }
};

Layout make_layout(const Config& config);

}  // namespace gradflow
