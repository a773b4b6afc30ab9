#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "measure/nonfinite.h"
#include "measure/readout.h"
#include "measure/store_sums.h"
#include "model/stack.h"
#include "train/optimizer.h"
#include "train/saved_state.h"

namespace gradflow {

/// Everything known of step `step` when it is over. Loss and gradient belong to the weights before the update.
struct StepResult {
  std::int64_t step = 0;
  std::int64_t tokens = 0;  ///< seen up to and with this step, padding left out
  double learning_rate = 0;
  double loss = 0;
  double grad_norm = 0;  ///< global, before clipping
  double clip_factor = 1;
  std::optional<double> eval_loss;
  GradientSums gradients;              ///< a number for each parameter tensor
  std::vector<double> weight_squares;  ///< Σ w² after the step, a number for each parameter tensor
  std::optional<UpdateSums> update;    ///< absent when the run stopped before it
  std::int64_t nonfinite = 0;          ///< gradient elements, and 1 for the loss
  std::optional<NonfiniteFinding> finding;
  bool skipped = false;  ///< no update because of a non-finite value
  bool last = false;     ///< no step follows
};

/// `last_step` where the answer shall not depend on which step is the last.
inline constexpr std::int64_t no_last_step = -1;

/// Whether something done every `every` steps is due at `step`; the first and the last step always are.
inline bool is_due(std::int64_t step, std::int64_t every, std::int64_t last_step) {
  return step == 1 || step == last_step || (every > 0 && step % every == 0);
}

/// Follows a run without acting on it.
class Observer {
 public:
  virtual ~Observer() = default;
  /// A run begins with its first step. May throw Interrupted: nothing has happened yet.
  virtual void begin() {}
  /// A run goes on, its weights and all observers restored: makes what this one owed. May throw Interrupted while it
  /// still owes it.
  virtual void go_on() {}
  /// A run goes on from a checkpoint: instead of `begin`. Throws std::range_error when the state is no state of this
  /// observer; another may be tried then, so that nothing may be changed outside this process.
  virtual void restore(const SavedState& state) { (void)state; }
  /// After all observers were restored from this state: cuts the files to what they were and goes on in them.
  virtual void reopen(const SavedState& state) { (void)state; }
  /// Between two steps: adds what `restore` will need. What was written to files must be safe on the disk then.
  virtual void save(SavedState& state) { (void)state; }
  /// Before step `step`: who looks at its passes; null: nobody.
  virtual Watcher* watcher_for(std::int64_t step) {
    (void)step;
    return nullptr;
  }
  /// On a device, when the passes of a step are over: what was measured in them and still lies there joins the step's
  /// one transfer. It is read before `step_done`.
  virtual void gather(Readout& readout) { (void)readout; }
  /// An evaluation begins, which may take long.
  virtual void evaluation_starts() {}
  /// Must not throw Interrupted: the weights have moved on. Work of the step that takes long may be given up instead,
  /// and is owed.
  virtual void step_done(const StepResult& result) = 0;
  /// Whether work of the last step was given up for a signal. The run is interrupted then; `save` remembers it.
  virtual bool owes() const { return false; }
};

}  // namespace gradflow
