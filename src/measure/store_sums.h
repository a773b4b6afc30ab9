#pragma once

#include <cstdint>
#include <vector>

#include "model/parameter_store.h"
#include "model/stack.h"

namespace gradflow {

/// √(x₁ + x₂ + …): the norm of a group from the squares of its parts.
double root_of_sum(const std::vector<double>& squares);

/// One number for each parameter tensor of a store, in the order of its entries.
struct GradientSums {
  std::vector<double> squares;          ///< Σ g², in double
  std::vector<std::int64_t> nonfinite;  ///< elements that are nan or infinite
  std::int64_t nonfinite_total = 0;

  double norm() const { return root_of_sum(squares); }
};

/// One pass over the gradient buffer. On a device the sums are made there and read once, which waits for it: a training
/// step takes `gradient_sums_on_device` and reads them with its other numbers.
GradientSums gradient_sums(ParameterStore& store);

/// The same on the CPU, segment by segment while the micro-batches of a step pass backward: set by the first, or zeroed
/// before it adds to them, and summed after the last, each time while the cache holds them. Over the whole buffer of a
/// deep stack the two passes would go to memory, for a tenth of the step.
class GradientsInPassing final : public GradientKeeper {
 public:
  explicit GradientsInPassing(ParameterStore& store);

  /// The backward pass of the step's first micro-batch follows, of its last, or of both.
  void micro_batch(bool first, bool last);
  void before_backward(std::size_t index, Segment& segment) override;
  void after_backward(std::size_t index) override;
  /// What `gradient_sums` would give, once the last has passed.
  GradientSums take();

 private:
  ParameterStore& store_;
  bool first_ = false, last_ = false;
  GradientSums sums_;
};

/// The same where the gradients lie: [2, entries] float64, Σ g² and the number of elements that are not finite.
at::Tensor gradient_sums_on_device(ParameterStore& store);
/// Those numbers once they are read, in their order.
GradientSums gradient_sums_of(const double* numbers, std::size_t entries);

/// Σ x² of each entry's slice of a flat buffer of the store's shape.
std::vector<double> entry_squares(const ParameterStore& store, const at::Tensor& flat);

/// Σ of each entry's slice of a flat buffer of the store's shape whose gaps hold zeros, [elements] float64, by one
/// reduction where the buffer lies, where the sums stay: [entries] float64. The way of a device.
at::Tensor slice_sums(const ParameterStore& store, const at::Tensor& per_element);
/// `slice_sums` of the squares of such a buffer of any dtype, taken in double.
at::Tensor slice_squares(const ParameterStore& store, const at::Tensor& flat);

/// Σ over the entries of each segment.
std::vector<double> per_segment(const ParameterStore& store, const std::vector<double>& per_entry);

}  // namespace gradflow
