#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "config/config.h"

namespace gradflow {

/// The tensors that autograd keeps between forward and backward of one segment, in sizes instead of numbers: the
/// operators of the stacks are called here as there (transformer.cpp, feedforward_stack.cpp, parts.cpp, norm.cpp), and
/// each keeps what its derivative formula reads. A tensor that several operators keep counts once.
class KeptTensors {
 public:
  using Tensor = std::size_t;  ///< names a tensor

  explicit KeptTensors(const Config& config);

  double bytes() const { return bytes_; }

  /// A new tensor of the stream's dtype that nobody keeps yet.
  Tensor make(double elements);
  /// A copy under another name.
  Tensor like(Tensor tensor) { return make(tensors_[tensor].count); }
  void keep(Tensor tensor);
  void keep_bytes(double bytes) { bytes_ += bytes; }
  double elements(Tensor tensor) const { return tensors_[tensor].count; }

  /// A matrix or convolution: keeps its input.
  Tensor linear(Tensor input, double output_elements);
  Tensor activation(Tensor input);
  /// The configured norm over rows of `features`; `on_images` takes the statistics over a whole sample of as many.
  Tensor norm(Tensor input, double features, bool on_images = false) {
    return norm(input, features, model_.norm, on_images);
  }
  Tensor norm(Tensor input, double features, Norm norm, bool on_images = false);
  Tensor dropout(Tensor input);
  /// The constant factor and the warm-up of a branch: nothing is kept, but the result is a new tensor.
  Tensor factor(Tensor input, bool present) { return present ? like(input) : input; }
  /// The residual form.
  Tensor joined(Tensor skip, Tensor branch);

 private:
  struct Entry {
    double count = 0;
    double element_bytes = 0;
    bool kept = false;
  };
  Tensor make(double elements, double element_bytes);
  Tensor make_kept(double elements, double element_bytes);

  const ModelConfig& model_;
  double stream_bytes_;     // an element of the stream
  double statistic_bytes_;  // an element inside a norm
  std::vector<Entry> tensors_;
  double bytes_ = 0;
};

/// Bytes of an element of the stream.
double stream_element_bytes(Dtype dtype);
/// Bytes of an element of parameters, statistics and losses.
double parameter_element_bytes(Dtype dtype);

}  // namespace gradflow
