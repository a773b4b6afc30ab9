#pragma once

#include <cstdint>
#include <string>

#include "config/config.h"
#include "model/parameter_store.h"
#include "model/segment.h"
#include "model/tensor.h"

namespace gradflow {

/// One site of the configured norm, with its own parameters `PREFIX.{alpha,weight,bias}` in the store. Statistics are
/// taken in float32 (float64 for float64 input) whatever the dtype of x.
class NormSite {
 public:
  /// No site: the identity.
  NormSite() = default;
  NormSite(const ParameterStore& store, const std::string& prefix, Norm norm, double epsilon);

  explicit operator bool() const { return norm_ != Norm::none; }

  /// x [..., features] → the same shape (README, table of norms). Features are the last dimension; BatchNorm
  /// takes its statistics over all others, leaving out padding positions of a [B, T, d] stream.
  at::Tensor operator()(const at::Tensor& x, const Pass& pass) const;
  /// The same for images x [B, C, H, W]: layernorm, rmsnorm and center over C, H, W of one sample, batchnorm over
  /// B, H, W; gains per channel.
  at::Tensor image(const at::Tensor& x, const Pass& pass) const;

 private:
  at::Tensor batch_norm(const at::Tensor& rows, const at::Tensor& real_rows, const Pass& pass) const;

  Norm norm_ = Norm::none;
  double epsilon_ = 0;
  at::Tensor alpha_, weight_, bias_, running_mean_, running_var_;
};

}  // namespace gradflow
