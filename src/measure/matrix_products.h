#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "config/config.h"
#include "core/clock.h"
#include "model/layout.h"
#include "model/tensor.h"

namespace gradflow {

/// y [rows, out] = x [rows, in]·Wᵀ: what one weight matrix W [out, in] multiplies in one micro-batch.
struct MatrixProduct {
  std::int64_t rows = 0, in = 0, out = 0;

  /// Of the forward pass and the two products of the backward pass (dx = dy·W, dW = dyᵀ·x).
  double operations() const { return 6.0 * static_cast<double>(rows) * static_cast<double>(in * out); }
};

/// The products with weights of one micro-batch in the order of the forward pass; query, key and value, which share
/// their input, are one of [3d, d]. Attention's scores are not among them. Absent for a resnet, whose convolutions are
/// no such products.
std::optional<std::vector<MatrixProduct>> matrix_products(const Config& config, const Layout& layout);

/// Those products of one step alone, on operands of their own: the time below which no implementation that calls this
/// BLAS gets. All forward, then all backward, accumulation times.
class MatrixProductClock {
 public:
  MatrixProductClock(std::vector<MatrixProduct> products, const ComputeConfig& compute, std::int64_t accumulation,
                     at::Device device);

  /// Seconds of one step's products on `clock`; the mean of as many as fill about 50 ms.
  double seconds(ClockKind clock = ClockKind::wall);
  /// Floating-point operations of one step's products.
  double operations() const { return operations_; }

 private:
  void run_once();

  std::vector<MatrixProduct> products_;
  std::int64_t accumulation_;
  double operations_ = 0;
  // The weights and their gradients one after another, as in the store; inputs and outputs share a buffer each.
  at::Tensor weights_, gradients_, inputs_, outputs_, input_gradients_;
};

}  // namespace gradflow
