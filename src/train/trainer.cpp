#include "train/trainer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "config/derived.h"
#include "core/interrupt.h"
#include "measure/nonfinite.h"

namespace gradflow {
Trainer::Trainer(const Config& config, Stack& stack, const DataSource& data, at::Device device,
                 std::vector<Observer*> observers, Checkpoints* checkpoints)
    : config_(config),
      stack_(stack),
      data_(data),
      device_(device),
      observers_(std::move(observers)),
      checkpoints_(checkpoints),
      optimizer_(config.train, stack.store()) {}

void Trainer::resume() {
  if (checkpoints_ == nullptr) return;
  const std::optional<Position> there = checkpoints_->restore();
  if (!there) return;
  position_ = *there;
  optimizer_.restore(position_.updates);
}

Ending Trainer::run() {
  if (position_.step == 0)
    for (Observer* observer : observers_) observer->begin();
  while (position_.step < config_.train.steps) {
    const std::optional<StepResult> result = undisturbed_step(position_.step + 1);
    if (!result) {
      if (checkpoints_ != nullptr) checkpoints_->save(position_);
      return {.interrupted = true};
    }
    position_ = {result->step, result->tokens, optimizer_.updates()};
    tell(*result);
    if (result->finding && config_.train.on_nonfinite == OnNonfinite::stop) {
      if (checkpoints_ != nullptr) checkpoints_->save_stopped(position_);
      return {.stopped_at = result->finding};
    }
    if (checkpoints_ != nullptr && checkpoints_->due(position_.step)) checkpoints_->save(position_);
  }
  return {};
}

void Trainer::tell(const StepResult& result) {
  // The weights have moved on: what an observer leaves undone here (a pass of its own) could not be made up for.
  const Steadfast to_the_end;
  for (Observer* observer : observers_) observer->step_done(result);
}

std::optional<StepResult> Trainer::undisturbed_step(std::int64_t step) {
  if (interrupted() != 0) return std::nullopt;
  // Running statistics are all that changes before the optimizer writes, and nobody gives up after that.
  const at::Tensor statistics = stack_.store().statistics().clone();
  try {
    return this->step(step);
  } catch (const Interrupted&) {
    stack_.store().statistics().copy_(statistics);
    return std::nullopt;
  }
}

StepResult Trainer::step(std::int64_t step) {
  const TrainConfig& train = config_.train;
  StepResult result{.step = step, .learning_rate = learning_rate(train, step), .last = step == train.steps};
  if (train.evaluate_every > 0 && is_due(step, train.evaluate_every, train.steps)) result.eval_loss = evaluate(step);

  const std::vector<Batch> batches = batches_of(step);
  result.tokens = position_.tokens;
  for (const Batch& batch : batches) result.tokens += batch.tokens;
  result.loss = forward_and_backward(step, batches);
  result.gradients = gradient_sums(stack_.store());
  result.grad_norm = result.gradients.norm();
  result.clip_factor = clip_factor(result.grad_norm);
  result.nonfinite = result.gradients.nonfinite_total + (std::isfinite(result.loss) ? 0 : 1);

  // Decided before the optimizer writes: with `stop` and `skip` the weights stay finite.
  if (result.nonfinite > 0) result.finding = find(step, batches, result.gradients);
  if (train.on_nonfinite == OnNonfinite::proceed) {
    result.update = optimizer_.apply(result.learning_rate, result.clip_factor);
  } else if (!result.finding) {
    result.update = optimizer_.apply_if_finite(result.learning_rate, result.clip_factor, result.grad_norm);
    if (!result.update->finite()) result.finding = first_overflow(stack_, result.update->after_squares);
  }
  if (result.update && result.update->written)
    result.weight_squares = result.update->after_squares;
  else
    leave_weights(result);
  return result;
}

void Trainer::leave_weights(StepResult& result) {
  result.weight_squares = entry_squares(stack_.store(), stack_.store().values());
  result.update.reset();
  if (config_.train.on_nonfinite == OnNonfinite::stop) {
    result.last = true;
  } else {
    result.skipped = true;
    result.update =
        UpdateSums{result.weight_squares, result.weight_squares, std::vector<double>(result.weight_squares.size())};
  }
}

double Trainer::forward_and_backward(std::int64_t step, const std::vector<Batch>& batches) {
  std::vector<Watcher*> watchers;
  for (Observer* observer : observers_)
    if (Watcher* watcher = observer->watcher_for(step)) watchers.push_back(watcher);
  stack_.store().zero_gradients();
  // The sum stays on the device until the step is over.
  at::Tensor loss = at::zeros({}, at::TensorOptions().dtype(at::kDouble).device(device_));
  const double share = 1 / static_cast<double>(batches.size());
  for (std::size_t micro = 0; micro < batches.size(); ++micro) {
    const Pass pass{.batch = &batches[micro],
                    .step = step,
                    .micro = static_cast<std::int64_t>(micro),
                    .recompute = config_.compute.recompute};
    loss.add_(stack_.forward(pass, watchers).to(at::kDouble), share);
    stack_.backward(pass, share, watchers);
  }
  return loss.item<double>();
}

std::vector<Batch> Trainer::batches_of(std::int64_t step) const {
  std::vector<Batch> batches;
  for (std::int64_t micro = 0; micro < config_.train.accumulation; ++micro) {
    give_up_if_overdue();
    batches.push_back(on_device(data_.training_batch(step, micro), device_));
  }
  return batches;
}

double Trainer::evaluate(std::int64_t step) {
  for (Observer* observer : observers_) observer->evaluation_starts();
  double sum = 0;
  for (std::int64_t index = 0; index < config_.train.evaluate_batches; ++index) {
    give_up_if_interrupted();  // nothing has been done of the step yet
    const Batch batch = on_device(data_.validation_batch(index), device_);
    sum += stack_.forward({.batch = &batch, .step = step, .training = false, .keep = false, .update_statistics = false})
               .item<double>();
  }
  return sum / static_cast<double>(config_.train.evaluate_batches);
}

double Trainer::clip_factor(double grad_norm) const {
  if (!config_.train.clip_norm || grad_norm <= *config_.train.clip_norm) return 1;
  return *config_.train.clip_norm / grad_norm;
}

NonfiniteFinding Trainer::find(std::int64_t step, const std::vector<Batch>& batches, const GradientSums& gradients) {
  // The weights are still those of the step and masks depend on the pass alone, so running it again shows the same
  // activations, without keeping them on every step just in case.
  std::vector<bool> finite(stack_.segment_count(), true);
  FiniteWatcher watcher(finite);
  Watcher* const watchers[] = {&watcher};
  for (std::size_t micro = 0; micro < batches.size(); ++micro)
    stack_.forward({.batch = &batches[micro],
                    .step = step,
                    .micro = static_cast<std::int64_t>(micro),
                    .keep = false,
                    .update_statistics = false},
                   watchers);
  return first_nonfinite(stack_, gradients, finite);
}

}  // namespace gradflow
