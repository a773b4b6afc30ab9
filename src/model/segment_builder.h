#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/config.h"
#include "model/layout.h"

namespace gradflow {

/// What a matrix is for; the schemes treat them differently. `branch_in` and `branch_out` are the first and the last
/// weight layer of a feed-forward, dense or convolutional branch.
enum class Role { query_key, value, attention_out, branch_in, branch_out, head, other };

/// Residual branches of the whole stack: two a Transformer block, one a block elsewhere.
std::int64_t branch_count(const ModelConfig& model);

/// The initial distribution of a matrix or convolution of block l (from 1; 1 outside the blocks) with `in` and `out`
/// the fans (of a 3×3 convolution nine times its channels). Schemes: spec, models.md; in the stacks whose block is one
/// branch, N stands wherever the scheme counts 2N branches.
Fill matrix_fill(const ModelConfig& model, Role role, double in, double out, double l);

/// Collects the parameters of one segment; knows the model's schemes for matrices, biases and norms.
class SegmentBuilder {
 public:
  SegmentBuilder(const ModelConfig& model, SegmentSpec& segment) : model_(model), segment_(segment) {}

  void add(std::string name, std::vector<std::int64_t> shape, Fill fill);
  /// NAME.weight [out, in].
  void weight(const std::string& name, Role role, std::int64_t out, std::int64_t in);
  /// NAME.weight [out, in, 3, 3].
  void convolution(const std::string& name, Role role, std::int64_t out, std::int64_t in);
  /// NAME.bias [size]. Under `sinusoid` every bias, a gate's too, is a wave around zero.
  void bias(const std::string& name, std::int64_t size, double start = 0);
  /// NAME.{alpha,weight,bias} and the buffers of one site of `norm`; nothing for `none`.
  void norm(const std::string& name, Norm norm, std::int64_t features);

  /// `start` everywhere; under `sinusoid` a wave of the given amplitude around `middle`, so that every element counts.
  Fill start_around(double start, double amplitude, double middle) const;

 private:
  double block() const;

  const ModelConfig& model_;
  SegmentSpec& segment_;
};

}  // namespace gradflow
