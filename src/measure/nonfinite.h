#pragma once

#include <vector>

#include "measure/store_sums.h"
#include "model/stack.h"

namespace gradflow {

/// Where the first non-finite value of a step was found.
struct NonfiniteFinding {
  enum class Kind {
    gradient,  ///< of a parameter
    loss,      ///< the loss alone; every gradient is finite
    update,    ///< loss and gradients are finite, the weights after the update would not be
  };
  Kind kind = Kind::gradient;
  std::string tensor;      ///< the first parameter in backward order; empty for the loss
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

/// The first tensor, walking from the loss down, whose gradient is not finite; the loss when none is.
NonfiniteFinding first_nonfinite(Stack& stack, const GradientSums& gradients, const std::vector<bool>& finite);

/// The first tensor, walking from the loss down, whose weights would not be finite: `after_squares` is Σ w² of each.
NonfiniteFinding first_overflow(Stack& stack, const std::vector<double>& after_squares);

}  // namespace gradflow
