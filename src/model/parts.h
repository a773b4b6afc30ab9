#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/config.h"
#include "model/parameter_store.h"
#include "model/segment.h"
#include "model/tensor.h"

namespace gradflow {

/// The dtype of the stream; parameters are stored in float32, or float64 beside a float64 stream.
at::ScalarType activation_dtype(Dtype dtype);

/// y = x·Wᵀ + b with W [out, in] and, if the store has it, b [out]. Under bfloat16 the master weights are rounded to
/// the dtype of x on use.
class Linear {
 public:
  Linear() = default;
  Linear(const ParameterStore& store, const std::string& prefix);
  at::Tensor operator()(const at::Tensor& x) const;

 private:
  at::Tensor weight_, bias_;
};

/// Several linear maps of one input as one product: a step of a hundred narrow blocks takes an eighth less with it. For
/// where the store holds their matrices side by side, and their biases; elsewhere it is false.
class JoinedLinear {
 public:
  JoinedLinear() = default;
  JoinedLinear(const ParameterStore& store, const std::vector<std::string>& prefixes);
  explicit operator bool() const { return weight_.defined(); }
  /// [..., in] → [..., out] for each of them, views of one tensor.
  std::vector<at::Tensor> operator()(const at::Tensor& x) const;

 private:
  at::Tensor weight_, bias_;  // leaves; their gradients are views of the store's
  std::int64_t maps_ = 0;
};

/// gelu (exact, erf), relu, tanh or identity, element by element.
at::Tensor activate(const at::Tensor& x, Activation activation);

/// Inverted dropout: each element is zero with probability p, else divided by 1 − p. The mask is a function of the
/// seed, the site and the pass (step, micro-batch) alone, so a recomputed or resumed step draws the same one.
class Dropout {
 public:
  Dropout(double probability, std::uint64_t seed, std::string site, std::int64_t accumulation);
  at::Tensor operator()(const at::Tensor& x, const Pass& pass) const;

 private:
  double probability_;
  std::uint64_t seed_;
  std::string site_;
  std::int64_t accumulation_;
};

/// How the skip and the branch become one: the residual form of one sub-layer with its learned parts
/// `PREFIX.{scale,gate.weight,gate.bias,mix.weight}` (README, table of residual forms).
class ResidualForm {
 public:
  ResidualForm(const ParameterStore& store, const std::string& prefix, Residual form);

  struct Sum {
    at::Tensor y;
    at::Tensor branch;  ///< the term that the branch adds to the skip
    at::Tensor skip;    ///< the other term; undefined where there is no skip path
  };
  /// skip and f of the same shape [..., d].
  Sum operator()(const at::Tensor& skip, const at::Tensor& f) const;

 private:
  Residual form_;
  at::Tensor scale_, mix_;
  Linear gate_;
};

}  // namespace gradflow
