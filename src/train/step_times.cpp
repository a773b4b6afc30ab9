#include "train/step_times.h"

#include <optional>

#include "core/error.h"
#include "core/interrupt.h"
#include "kernels/backend.h"
#include "train/recorder.h"
#include "train/trainer.h"

namespace gradflow {
namespace {

constexpr std::int64_t every = 2;          // steps from one recorded step to the next
constexpr std::int64_t warm_up_steps = 3;  // odd: the first timed step is a recorded one
static_assert(warm_up_steps % every == 1);

/// Adds up the times of the steps of both kinds. Told last, so that a step ends when every other observer is done.
class StepClock final : public Observer {
 public:
  StepClock(std::int64_t steps, ClockKind clock, bool phases) : steps_(steps), clock_(clock) {
    if (phases) phase_clock_.emplace(clock);
  }

  void step_done(const StepResult& result) override {
    const double now = seconds_on(clock_);
    const std::int64_t timed = result.step - warm_up_steps;  // from 1
    const bool counts = timed >= 1 && timed <= every * steps_, is_recorded = result.step % every == 0;
    if (counts) (is_recorded ? times_.recorded : times_.unrecorded) += now - before_;
    times_.tokens = result.tokens / result.step;
    if (phase_clock_) {
      const PhaseSeconds phases = phase_clock_->take();
      PhaseSeconds& sums = is_recorded ? times_.recorded_phases : times_.unrecorded_phases;
      for (std::size_t p = 0; counts && p < phase_count; ++p) sums[p] += phases[p];
    }
    before_ = now;
  }

  /// Of one step: the means.
  StepTimes times() const {
    const auto steps = static_cast<double>(steps_);
    StepTimes means = times_;
    for (double* sum : {&means.recorded, &means.unrecorded}) *sum /= steps;
    for (PhaseSeconds* phases : {&means.recorded_phases, &means.unrecorded_phases})
      for (double& sum : *phases) sum /= steps;
    return means;
  }

 private:
  std::int64_t steps_;
  ClockKind clock_;
  std::optional<PhaseClock> phase_clock_;
  double before_ = 0;
  StepTimes times_;  // sums
};

}  // namespace

StepTimes time_steps(const Config& config, const DataSource& data, at::Device device, std::int64_t steps,
                     const std::string& folder, ClockKind clock, bool phases) {
  Config run = config;
  // One more than is timed: the last step of a run is always recorded.
  run.train.steps = warm_up_steps + every * steps + 1;
  run.train.evaluate_every = 0;
  run.record.steps_every = run.record.layers_every = every;
  run.record.quantities = {"standard"};
  run.record.tensors = false;

  Stack stack(run, device, segment_factory(run, device));
  Recorder recorder(run, stack, device, folder);
  StepClock step_clock(steps, clock, phases);
  Trainer trainer(run, stack, data, device, {&recorder, &step_clock});
  const Ending ending = trainer.run();
  if (ending.interrupted) throw Interrupted();
  if (ending.stopped_at)
    throw Error("the run met a value that is not finite within a few steps; lower train.learning_rate");
  recorder.finish();
  return step_clock.times();
}

}  // namespace gradflow
