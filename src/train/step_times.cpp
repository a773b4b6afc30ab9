#include "train/step_times.h"

#include "core/error.h"
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
  StepClock(std::int64_t steps, ClockKind clock) : steps_(steps), clock_(clock) {}

  void step_done(const StepResult& result) override {
    const double now = seconds_on(clock_);
    const std::int64_t timed = result.step - warm_up_steps;  // from 1
    if (timed >= 1 && timed <= every * steps_) (result.step % every == 0 ? recorded_ : unrecorded_) += now - before_;
    tokens_ = result.tokens / result.step;
    before_ = now;
  }

  StepTimes times() const {
    const auto steps = static_cast<double>(steps_);
    return {recorded_ / steps, unrecorded_ / steps, tokens_};
  }

 private:
  std::int64_t steps_;
  ClockKind clock_;
  double before_ = 0;
  double recorded_ = 0, unrecorded_ = 0;
  std::int64_t tokens_ = 0;
};

}  // namespace

StepTimes time_steps(const Config& config, const DataSource& data, at::Device device, std::int64_t steps,
                     const std::string& folder, ClockKind clock) {
  Config run = config;
  // One more than is timed: the last step of a run is always recorded.
  run.train.steps = warm_up_steps + every * steps + 1;
  run.train.evaluate_every = 0;
  run.record.steps_every = run.record.layers_every = every;
  run.record.quantities = {"standard"};
  run.record.tensors = false;

  Stack stack(run, device, segment_factory(run, device));
  Recorder recorder(run, stack, device, folder);
  StepClock step_clock(steps, clock);
  Trainer trainer(run, stack, data, device, {&recorder, &step_clock});
  if (trainer.run().stopped_at)
    throw Error("the run met a value that is not finite within a few steps; lower train.learning_rate");
  recorder.finish();
  return step_clock.times();
}

}  // namespace gradflow
