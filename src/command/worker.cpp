#include "command/worker.h"

#include <chrono>
#include <nlohmann/json.hpp>
#include <sstream>

#include "command/experiment.h"
#include "command/failure.h"
#include "command/prepare.h"
#include "core/interrupt.h"
#include "core/lock.h"
#include "core/numbers.h"
#include "train/observer.h"

namespace gradflow {
namespace {

using Clock = std::chrono::steady_clock;

/// Tells the sweep how far the run is, a few times a second.
class Reporter final : public Observer {
 public:
  Reporter(Channel& channel, std::int64_t steps) : channel_(channel), steps_(steps) {}

  void step_done(const StepResult& result) override {
    if (Clock::now() < next_) return;
    next_ = Clock::now() + std::chrono::milliseconds(200);
    channel_.send(WorkerReport{.share = static_cast<double>(result.step) / static_cast<double>(steps_)}.text());
  }

 private:
  Channel& channel_;
  std::int64_t steps_;
  Clock::time_point next_ = Clock::now();
};

WorkerReport run_cell(Channel& channel, const Grid& grid, const GridCell& cell) {
  std::ostringstream said;
  WorkerReport report;
  try {
    const Prepared prepared = prepare([&](const FurtherCheck& further) { return grid.config(cell.number, further); });
    Reporter reporter(channel, prepared.config.train.steps);
    // The sweep has asked for the memory of all cells before the first began. What is free now is less by what this
    // process keeps of the cells before, which the next one takes again.
    const ExperimentResult result = run_experiment(
        prepared, {.out = cell.folder, .resume = true, .force = true, .quiet = true, .observer = &reporter}, said);
    report.kind = WorkerReport::Kind::ended;
    report.exit = result.exit;
    report.was_finished = result.was_finished;
  } catch (const Interrupted&) {
    report.kind = WorkerReport::Kind::ended;
    report.exit = Exit::interrupted;
  } catch (const LockHeld& held) {
    report.kind = WorkerReport::Kind::elsewhere;
    report.lines = held.lines();
  } catch (const std::exception& failure) {
    report.kind = WorkerReport::Kind::failed;
    report.lines = failure_lines(failure);
  }
  // A message through the channel has an end: of very many warnings the last are told here, run.log has all.
  constexpr std::size_t told_at_most = 50000;
  report.said = said.str();
  if (report.said.size() > told_at_most)
    report.said.erase(0, report.said.find('\n', report.said.size() - told_at_most) + 1);
  return report;
}

}  // namespace

std::string WorkerReport::text() const {
  const nlohmann::json json = {{"kind", static_cast<int>(kind)}, {"share", share}, {"exit", static_cast<int>(exit)},
                               {"was_finished", was_finished},   {"lines", lines}, {"said", said}};
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

WorkerReport WorkerReport::from(std::string_view text) {
  const auto json = nlohmann::json::parse(text);
  return {.kind = static_cast<Kind>(json.at("kind").get<int>()),
          .share = json.at("share"),
          .exit = static_cast<Exit>(json.at("exit").get<int>()),
          .was_finished = json.at("was_finished"),
          .lines = json.at("lines"),
          .said = json.at("said")};
}

void work(Channel& channel, const Grid& grid, const std::vector<GridCell>& cells) {
  catch_interrupts(SecondSigint::waits);  // Ctrl-C reaches a worker twice: from the terminal and from the sweep
  while (const auto request = channel.receive()) {
    const auto index = parse_integer(*request);
    const WorkerReport report = run_cell(channel, grid, cells.at(static_cast<std::size_t>(index.value())));
    if (!channel.send(report.text()) || interrupted()) return;
  }
}

}  // namespace gradflow
