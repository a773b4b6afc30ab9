#pragma once

#include <memory>
#include <vector>

#include "config/config.h"
#include "config/resolved.h"
#include "data/source.h"
#include "kernels/backend.h"
#include "testing/small_transformer.h"
#include "train/trainer.h"

namespace gradflow::testing {

/// A small Transformer on `markov` that trains in milliseconds; resolved.
inline Config tiny_config() {
  Config config = small_transformer();
  config.name = "tiny";
  config.train.steps = 6;
  return resolved(config);
}

/// Keeps every step's result; can look at the passes as well.
class StepCollector final : public Observer {
 public:
  explicit StepCollector(Watcher* watcher = nullptr) : watcher_(watcher) {}
  Watcher* watcher_for(std::int64_t) override { return watcher_; }
  void step_done(const StepResult& result) override { steps.push_back(result); }

  std::vector<StepResult> steps;

 private:
  Watcher* watcher_;
};

/// A finished training run in memory.
struct TrainedRun {
  std::unique_ptr<DataSource> source;
  std::unique_ptr<Stack> stack;
  std::vector<StepResult> steps;
  std::optional<NonfiniteFinding> stopped_at;

  std::vector<double> losses() const {
    std::vector<double> values;
    for (const StepResult& step : steps) values.push_back(step.loss);
    return values;
  }
};

/// The fused backend where `config` names it, else the reference: here `auto` chooses nothing.
inline SegmentFactory named_backend(const Config& config) {
  return config.compute.backend == Backend::fused ? make_fused_segments : make_reference_segments;
}

/// Trains `config` on the CPU; `before` may change the initial weights, `watcher` may look at the passes.
template <class Before>
TrainedRun train(const Config& config, Before before, Watcher* watcher = nullptr) {
  TrainedRun run{make_source(config), std::make_unique<Stack>(config, at::kCPU, named_backend(config)), {}, {}};
  before(*run.stack);
  StepCollector collector(watcher);
  Trainer trainer(config, *run.stack, *run.source, at::kCPU, {&collector});
  run.stopped_at = trainer.run().stopped_at;
  run.steps = std::move(collector.steps);
  return run;
}

inline TrainedRun train(const Config& config) {
  return train(config, [](Stack&) {});
}

}  // namespace gradflow::testing
