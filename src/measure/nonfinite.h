#pragma once

#include <vector>

#include "measure/store_sums.h"
#include "model/stack.h"

namespace gradflow {

/// Where the first non-finite value of a step was found.
struct NonfiniteFinding {
  std::string tensor;      ///< first parameter in backward order with a non-finite gradient; "loss" if none has
  std::int64_t layer = 0;  ///< its row of layers.csv
  std::string sublayer;
  bool activation_finite = true;  ///< whether what that segment put out was finite
};

/// Notes for each segment whether everything it put out, over all passes watched, was finite.
class FiniteWatcher final : public Watcher {
 public:
  /// `finite`, one a segment, starts true and must outlive the watcher.
  explicit FiniteWatcher(std::vector<bool>& finite) : finite_(finite) {}
  void forward_done(std::size_t segment, const Stream& input, const Stream& output, const Inside& inside,
                    const Batch& batch) override;
  void gradient_arrived(std::size_t, const Stream&) override {}

 private:
  std::vector<bool>& finite_;
};

/// The first tensor, walking from the loss down, whose gradient is not finite.
NonfiniteFinding first_nonfinite(Stack& stack, const GradientSums& gradients, const std::vector<bool>& finite);

}  // namespace gradflow
