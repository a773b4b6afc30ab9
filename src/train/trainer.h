#pragma once

#include <optional>
#include <vector>

#include "config/config.h"
#include "data/source.h"
#include "model/stack.h"
#include "train/observer.h"
#include "train/optimizer.h"

namespace gradflow {

/// The training loop: data through the stack, gradients into the optimizer, results to the observers.
class Trainer {
 public:
  /// All references must outlive the trainer; observers are told in this order.
  Trainer(const Config& config, Stack& stack, const DataSource& data, at::Device device,
          std::vector<Observer*> observers);

  /// Steps 1 … train.steps, or until a non-finite value with on_nonfinite `stop`. What was found then is returned.
  std::optional<NonfiniteFinding> run();

 private:
  StepResult step(std::int64_t step);
  double forward_and_backward(std::int64_t step, const std::vector<Batch>& batches);
  std::vector<Batch> batches_of(std::int64_t step) const;
  /// No update: the run ends with this step (`stop`), or its update is a step of length zero (`skip`).
  void leave_weights(StepResult& result);
  double evaluate(std::int64_t step);
  double clip_factor(double grad_norm) const;
  NonfiniteFinding find(std::int64_t step, const std::vector<Batch>& batches, const GradientSums& gradients);

  const Config& config_;
  Stack& stack_;
  const DataSource& data_;
  at::Device device_;
  std::vector<Observer*> observers_;
  Optimizer optimizer_;
  std::int64_t tokens_ = 0;
};

}  // namespace gradflow
