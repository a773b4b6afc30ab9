#pragma once

#include <optional>
#include <vector>

#include "config/config.h"
#include "data/source.h"
#include "measure/store_sums.h"
#include "model/stack.h"
#include "train/checkpoint.h"
#include "train/observer.h"
#include "train/optimizer.h"

namespace gradflow {

/// How a training run ended, if not with its last step.
struct Ending {
  std::optional<NonfiniteFinding> stopped_at;  ///< a non-finite value with on_nonfinite `stop`
  bool interrupted = false;                    ///< a caught signal (core/interrupt.h) arrived
};

/// The training loop: data through the stack, gradients into the optimizer, results to the observers.
class Trainer {
 public:
  /// All references must outlive the trainer; observers are told in this order. Without `checkpoints` none are written.
  Trainer(const Config& config, Stack& stack, const DataSource& data, at::Device device,
          std::vector<Observer*> observers, Checkpoints* checkpoints = nullptr);

  /// Takes up the newest checkpoint, if there is one.
  void resume();
  /// The steps that are left up to train.steps, or until a non-finite value with on_nonfinite `stop`, or until a
  /// signal: the step is finished then, unless that takes seconds; it is given up in that case, and made again by
  /// whoever resumes.
  Ending run();

  const Position& position() const { return position_; }

 private:
  /// The step, unless a signal came that could not wait until its end; then everything stands as before it.
  std::optional<StepResult> undisturbed_step(std::int64_t step);
  void make_what_is_owed();
  /// Whether one of them owes something.
  bool tell(const StepResult& result);
  /// Whether the run ends with this step at a non-finite value.
  bool stops(const StepResult& result) const;
  StepResult step(std::int64_t step);
  /// Gradients into the store; the mean loss, [] float64, where the stack is.
  at::Tensor forward_and_backward(std::int64_t step, const std::vector<Batch>& batches);
  /// The numbers that the step is decided on, each as soon as it is computed.
  void measure(StepResult& result, const at::Tensor& loss, const at::Tensor& evaluation);
  /// The same on a device, with the update, by one transfer: the only time in a step that the host waits.
  void measure_on_device(StepResult& result, const at::Tensor& loss, const at::Tensor& evaluation,
                         PreparedUpdate& update);
  std::vector<Batch> batches_of(std::int64_t step) const;
  /// No update: the run ends with this step (`stop`), or its update is a step of length zero (`skip`).
  void leave_weights(StepResult& result);
  /// The mean loss over the validation batches, [] float64, where the stack is.
  at::Tensor evaluate(std::int64_t step);
  double clip_factor(double grad_norm) const;
  at::Tensor clip_factor(const at::Tensor& grad_norm) const;
  NonfiniteFinding find(std::int64_t step, const std::vector<Batch>& batches, const GradientSums& gradients);

  const Config& config_;
  Stack& stack_;
  const DataSource& data_;
  at::Device device_;
  std::vector<Observer*> observers_;
  Checkpoints* checkpoints_;
  bool on_device_;                // numbers of a step are read together, at its end
  GradientsInPassing gradients_;  // elsewhere
  Optimizer optimizer_;
  Position position_;
};

}  // namespace gradflow
