#pragma once

#include <string>

#include "config/config.h"
#include "kernels/norm.h"
#include "kernels/workspace.h"

namespace gradflow {

/// One site of the configured norm in a fused segment: its parameters, and the statistics of the latest forward.
class NormSlot {
 public:
  /// No norm here.
  NormSlot() = default;
  /// `statistics` [2·rows of a micro-batch]; `scale` multiplies the result.
  NormSlot(const ParameterStore& store, const std::string& prefix, const ModelConfig& model, float scale,
           float* statistics);

  explicit operator bool() const { return static_cast<bool>(gain_); }

  // x, y, dy and dx are the rows of `chunk`, [chunk.rows, width].
  void forward(const Chunk& chunk, const float* x, float* y) const;
  void again(const Chunk& chunk, const float* x, float* y) const;
  void backward(const Chunk& chunk, const float* dy, const float* x, float keep, float* dx) const;

 private:
  NormShape shape_of(const Chunk& chunk) const;

  NormShape shape_;
  Parameter gain_, bias_;
  float* statistics_ = nullptr;
};

}  // namespace gradflow
