#include "train/trainer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "config/derived.h"
#include "core/interrupt.h"
#include "core/phases.h"
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
      on_device_(stays_on_device(stack.store().values())),
      gradients_(stack.store()),
      optimizer_(config.train, stack.store()) {}

void Trainer::resume() {
  if (checkpoints_ == nullptr) return;
  const std::optional<Position> there = checkpoints_->restore();
  if (!there) return;
  position_ = *there;
  optimizer_.restore(position_.updates);
}

Ending Trainer::run() {
  if (position_.step == 0) {
    for (Observer* observer : observers_) observer->begin();
  } else {
    try {
      make_what_is_owed();
    } catch (const Interrupted&) {
      return {.interrupted = true};  // the checkpoint that it goes on from remembers it
    }
  }
  while (position_.step < config_.train.steps) {
    const std::optional<StepResult> result = undisturbed_step(position_.step + 1);
    if (!result) {
      if (checkpoints_ != nullptr) checkpoints_->save(position_);
      return {.interrupted = true};
    }
    position_ = {result->step, result->tokens, optimizer_.updates()};
    const bool owing = tell(*result);
    if (owing) {
      // A run that stops here has no step to go on with: the checkpoint before serves, and its steps are made again.
      if (checkpoints_ != nullptr && !stops(*result)) checkpoints_->save(position_);
      return {.interrupted = true};
    }
    if (stops(*result)) {
      if (checkpoints_ != nullptr) checkpoints_->save_stopped(position_);
      return {.stopped_at = result->finding};
    }
    if (checkpoints_ != nullptr && checkpoints_->due(position_.step)) checkpoints_->save(position_);
  }
  return {};
}

void Trainer::make_what_is_owed() {
  const bool owing = std::any_of(observers_.begin(), observers_.end(), [](const Observer* o) { return o->owes(); });
  for (Observer* observer : observers_) observer->go_on();
  if (owing && checkpoints_ != nullptr) checkpoints_->save_again(position_);
}

bool Trainer::tell(const StepResult& result) {
  bool owing = false;
  for (Observer* observer : observers_) {
    observer->step_done(result);
    owing = owing || observer->owes();
  }
  return owing;
}

bool Trainer::stops(const StepResult& result) const {
  return result.finding && config_.train.on_nonfinite == OnNonfinite::stop;
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
  at::Tensor evaluation;
  if (train.evaluate_every > 0 && is_due(step, train.evaluate_every, train.steps)) evaluation = evaluate(step);

  const std::vector<Batch> batches = batches_of(step);
  result.tokens = position_.tokens;
  for (const Batch& batch : batches) result.tokens += batch.tokens;
  const at::Tensor loss = forward_and_backward(step, batches);
  PreparedUpdate prepared;
  if (on_device_)
    measure_on_device(result, loss, evaluation, prepared);
  else
    measure(result, loss, evaluation);
  result.nonfinite = result.gradients.nonfinite_total + (std::isfinite(result.loss) ? 0 : 1);

  // Decided before the optimizer writes: with `stop` and `skip` the weights stay finite.
  if (result.nonfinite > 0) result.finding = find(step, batches, result.gradients);
  const PhaseScope phase(Phase::optimizer);
  if (train.on_nonfinite == OnNonfinite::proceed) {
    result.update =
        on_device_ ? optimizer_.write(prepared) : optimizer_.apply(result.learning_rate, result.clip_factor);
  } else if (!result.finding) {
    result.update = on_device_ ? optimizer_.write_if_finite(prepared)
                               : optimizer_.apply_if_finite(result.learning_rate, result.clip_factor, result.grad_norm);
    if (!result.update->finite()) result.finding = first_overflow(stack_, result.update->after_squares);
  }
  if (result.update && result.update->written)
    result.weight_squares = result.update->after_squares;
  else
    leave_weights(result);
  return result;
}

void Trainer::measure(StepResult& result, const at::Tensor& loss, const at::Tensor& evaluation) {
  const PhaseScope phase(Phase::gradient_norms);
  if (evaluation.defined()) result.eval_loss = evaluation.item<double>();
  result.loss = loss.item<double>();
  result.gradients = gradients_.take();
  result.grad_norm = result.gradients.norm();
  result.clip_factor = clip_factor(result.grad_norm);
}

void Trainer::measure_on_device(StepResult& result, const at::Tensor& loss, const at::Tensor& evaluation,
                                PreparedUpdate& update) {
  // Queued without looking: norms, clip factor, and the update beside the weights, whatever will be decided. Every step
  // is read, recorded or not, because the watch for spikes follows all of them. What a run asks for besides reads for
  // itself: spectral norms (record.tensors), quantities on demand, checkpoints, the search behind a non-finite value.
  ParameterStore& store = stack_.store();
  const at::Tensor sums = gradient_sums_on_device(store);
  const at::Tensor clip = clip_factor(sums[0].sum().sqrt());
  update = optimizer_.prepare(result.learning_rate, clip);

  Readout readout;
  if (evaluation.defined()) readout.add(evaluation, [&](const double* number) { result.eval_loss = *number; });
  readout.add(loss, [&](const double* number) { result.loss = *number; });
  readout.add(sums, [&](const double* numbers) {
    result.gradients = gradient_sums_of(numbers, store.entries().size());
    result.grad_norm = result.gradients.norm();
  });
  readout.add(clip, [&](const double* number) { result.clip_factor = *number; });
  update.gather(readout);
  for (Observer* observer : observers_) observer->gather(readout);
  readout.read();
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

at::Tensor Trainer::forward_and_backward(std::int64_t step, const std::vector<Batch>& batches) {
  std::vector<Watcher*> watchers;
  for (Observer* observer : observers_)
    if (Watcher* watcher = observer->watcher_for(step)) watchers.push_back(watcher);
  if (on_device_) {  // one operator, where the way of the CPU would take one a segment
    const PhaseScope phase(Phase::gradient_norms);
    stack_.store().zero_gradients();
  }
  // The sum stays on the device until the step is over.
  at::Tensor loss = at::zeros({}, at::TensorOptions().dtype(at::kDouble).device(device_));
  const double share = 1 / static_cast<double>(batches.size());
  for (std::size_t micro = 0; micro < batches.size(); ++micro) {
    const Pass pass{.batch = &batches[micro],
                    .step = step,
                    .micro = static_cast<std::int64_t>(micro),
                    .recompute = config_.compute.recompute};
    {
      const PhaseScope phase(Phase::forward);
      loss.add_(stack_.forward(pass, watchers).to(at::kDouble), share);
    }
    const PhaseScope phase(Phase::backward);
    if (!on_device_) gradients_.micro_batch(micro == 0, micro + 1 == batches.size());
    stack_.backward(pass, share, watchers, on_device_ ? nullptr : &gradients_);
  }
  return loss;
}

std::vector<Batch> Trainer::batches_of(std::int64_t step) const {
  const PhaseScope phase(Phase::data);
  std::vector<Batch> batches;
  for (std::int64_t micro = 0; micro < config_.train.accumulation; ++micro) {
    give_up_if_overdue();
    batches.push_back(on_device(data_.training_batch(step, micro), device_));
  }
  return batches;
}

at::Tensor Trainer::evaluate(std::int64_t step) {
  for (Observer* observer : observers_) observer->evaluation_starts();
  at::Tensor sum = at::zeros({}, at::TensorOptions().dtype(at::kDouble).device(device_));
  for (std::int64_t index = 0; index < config_.train.evaluate_batches; ++index) {
    give_up_if_interrupted();  // nothing has been done of the step yet
    const Batch batch = on_device(data_.validation_batch(index), device_);
    sum.add_(
        stack_.forward({.batch = &batch, .step = step, .training = false, .keep = false, .update_statistics = false}));
  }
  return sum / static_cast<double>(config_.train.evaluate_batches);
}

double Trainer::clip_factor(double grad_norm) const {
  if (!config_.train.clip_norm || grad_norm <= *config_.train.clip_norm) return 1;
  return *config_.train.clip_norm / grad_norm;
}

at::Tensor Trainer::clip_factor(const at::Tensor& grad_norm) const {
  if (!config_.train.clip_norm) return at::ones_like(grad_norm);
  return at::where(grad_norm <= *config_.train.clip_norm, at::ones_like(grad_norm),
                   *config_.train.clip_norm / grad_norm);
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
