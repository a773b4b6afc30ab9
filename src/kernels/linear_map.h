#pragma once

#include <cstddef>

#include "kernels/fetch_ahead.h"
#include "kernels/workspace.h"

namespace gradflow {

/// Rows of a row-major matrix, `step` floats from one to the next.
template <class T>
struct Rows {
  T* first = nullptr;
  std::size_t step = 0;
};

/// A linear map y = x·Wᵀ of one segment, W [out, in] row-major. Products of narrow maps are our own (product.h); the
/// others come from the BLAS that LibTorch brings. What makes both fast is that the caller hands over few enough rows
/// for all operands to stay in the second-level cache.
class LinearMap {
 public:
  LinearMap() = default;
  /// Takes `packed_size` floats of the segment's room.
  LinearMap(const Parameter& weight, std::size_t in, std::size_t out, WeightRoom& room, FetchAhead& ahead);
  static std::size_t packed_size(std::size_t in, std::size_t out);

  /// The calls of `forward` of one pass follow; or those of the two others. The weights do not change meanwhile.
  void begin_forward() const;
  void begin_backward() const;
  /// y [rows, out] = x·Wᵀ for x [rows, in].
  void forward(std::size_t rows, Rows<const float> x, Rows<float> y) const;
  /// dx = dy·W, or dx += dy·W.
  void input_gradient(std::size_t rows, Rows<const float> dy, Rows<float> dx, bool add = false) const;
  /// dW += dyᵀ·x; in the first call after `set_gradient`, dW = dyᵀ·x.
  void add_weight_gradient(std::size_t rows, Rows<const float> dy, Rows<const float> x);
  void set_gradient() { set_gradient_ = true; }
  /// Whether `of` lies in dW: three matrices of the store can be one map.
  bool has_gradient(const float* of) const { return of >= weight_.gradient && of < weight_.gradient + in_ * out_; }

  void fetch_weight() const { ahead_->add(weight_.value, in_ * out_); }
  void fetch_weight_gradient() const { ahead_->add(weight_.gradient, in_ * out_); }

 private:
  Parameter weight_;
  std::size_t in_ = 0, out_ = 0;
  float* packed_ = nullptr;  // null: by the BLAS
  FetchAhead* ahead_ = nullptr;
  bool set_gradient_ = false;
};

}  // namespace gradflow
