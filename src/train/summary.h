#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "analysis/verdict.h"
#include "config/config.h"
#include "data/task_facts.h"
#include "train/observer.h"
#include "train/recorder.h"

namespace gradflow {

/// Keeps what summary.json says of the whole run.
class RunAccount final : public Observer {
 public:
  void step_done(const StepResult& result) override;
  void save(SavedState& state) override;
  void restore(const SavedState& state) override;

  struct Best {
    double loss = 0;
    std::int64_t step = 0;
  };

  std::int64_t tokens = 0;
  std::int64_t steps = 0;                     ///< done
  std::optional<double> first_loss;           ///< of the first of them
  std::vector<double> last_losses;            ///< of the newest, at most `final_losses`
  std::optional<Best> best;                   ///< smallest finite loss
  std::optional<double> eval_loss;            ///< latest
  std::int64_t clipped_steps = 0;             ///< clip_factor below 1
  std::int64_t skipped_steps = 0;             ///< without an update because of a non-finite value
  std::int64_t tensors_without_gradient = 0;  ///< parameters whose gradient was exactly zero in the latest step

 private:
  template <class NumberRow, class Account>
  static void numbers_of(NumberRow& row, Account& account);
};

/// Everything that is known when a run is over.
struct RunSummary {
  const Config& config;
  Stack& stack;
  const TaskFacts& facts;
  const RunAccount& account;
  const Recorder& recorder;
  std::optional<NonfiniteFinding> stopped_at;

  std::optional<Verdict> verdict() const;
  /// The content of summary.json. A number that is not finite is null here; the CSV files have it exactly.
  nlohmann::ordered_json json() const;
  /// What the terminal shows at the end, several lines.
  std::string text() const;
  /// Why the run stopped at a non-finite value, in one line; empty when it did not.
  std::string stop_reason() const;
};

}  // namespace gradflow
