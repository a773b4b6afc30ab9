#include "command/sweep_run.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>

#include "command/memory_demand.h"
#include "command/worker.h"
#include "core/child_process.h"
#include "core/files.h"
#include "core/interrupt.h"
#include "core/lock.h"
#include "core/machine.h"
#include "core/memory.h"
#include "core/numbers.h"
#include "output/manifest.h"
#include "output/progress.h"

namespace gradflow {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// A process that runs one cell after the other.
struct Worker {
  Worker(const Grid& grid, const std::vector<GridCell>& cells, const GridCell& first)
      : process([&](Channel& channel) { work(channel, grid, cells); }),
        threads(first.threads),
        flush_denormals(first.flush_denormals) {}

  /// What a process keeps from its first run on: the threads of LibTorch, and how they treat denormal numbers.
  bool suits(const GridCell& next) const { return next.threads == threads && next.flush_denormals == flush_denormals; }

  ChildProcess process;
  std::int64_t threads;
  bool flush_denormals;
  std::optional<std::size_t> cell;  ///< index of the one at hand
  double share = 0;                 ///< of its steps that are done
  Clock::time_point begun;
};

class Sweep {
 public:
  Sweep(const Grid& grid, const GridCells& cells, const SweepOptions& options, RunsTable& table, Log& log)
      : grid_(grid),
        cells_(cells.cells),
        options_(options),
        table_(table),
        log_(log),
        style_(progress_style(options.quiet)),
        crashes_(cells_.size()) {
    for (std::size_t i = 0; i < cells_.size(); ++i) {
      queue_.push_back(i);
      // Finished ones are still given to a worker, which compares the whole configuration; that takes no time.
      if (!table_.rows()[i].done()) cost_to_do_ += cells_[i].cost;
    }
  }

  Exit run() {
    table_.write();
    while (true) {
      if (interrupted() && !stopping_)
        stop(fmt::format("{}: waiting for the runs at hand to end", signal_name(interrupted())));
      if (!stopping_) give_out();
      if (busy() == 0) {
        if (stopping_ || !look_again_elsewhere()) break;
        continue;
      }
      listen();
      show_progress();
    }
    workers_.clear();
    if (style_ == ProgressStyle::terminal) log_.clear_status();
    return finish();
  }

 private:
  std::size_t busy() const {
    return static_cast<std::size_t>(
        std::count_if(workers_.begin(), workers_.end(), [](const auto& worker) { return worker->cell.has_value(); }));
  }

  void give_out() {
    while (!queue_.empty() && busy() < static_cast<std::size_t>(*options_.jobs)) {
      const std::size_t index = queue_.front();
      Worker& worker = free_worker(cells_[index]);
      worker.share = 0;
      worker.begun = Clock::now();
      // One that died while it had nothing to do is replaced, and the cell stays first.
      if (!worker.process.channel().send(std::to_string(index))) {
        remove(worker);
        continue;
      }
      worker.cell = index;
      queue_.pop_front();
    }
  }

  Worker& free_worker(const GridCell& cell) {
    Worker* other = nullptr;
    for (const auto& worker : workers_) {
      if (worker->cell) continue;
      if (worker->suits(cell)) return *worker;
      other = worker.get();
    }
    if (other != nullptr) remove(*other);
    return *workers_.emplace_back(std::make_unique<Worker>(grid_, cells_, cell));
  }

  void remove(Worker& worker) {
    std::erase_if(workers_, [&](const auto& each) { return each.get() == &worker; });
  }

  /// Waits a moment for what the workers say.
  void listen() {
    std::vector<pollfd> ends;
    std::vector<Worker*> speakers;
    for (const auto& worker : workers_) {
      if (!worker->cell) continue;
      ends.push_back({.fd = worker->process.channel().descriptor(), .events = POLLIN, .revents = 0});
      speakers.push_back(worker.get());
    }
    // Not longer: a signal may arrive just before the wait begins.
    if (::poll(ends.data(), ends.size(), 100) <= 0) return;
    for (std::size_t i = 0; i < ends.size(); ++i)
      if (ends[i].revents != 0) hear(*speakers[i]);
    if (seconds_since(table_written_) > 1) write_table();
  }

  void hear(Worker& worker) {
    const auto message = worker.process.channel().receive();
    if (!message) return buried(worker);
    const WorkerReport report = WorkerReport::from(*message);
    if (report.kind == WorkerReport::Kind::progress) {
      worker.share = report.share;
      return;
    }
    const std::size_t index = *worker.cell;
    const double seconds = seconds_since(worker.begun);
    worker.cell.reset();
    if (!report.said.empty()) log_.line(fmt::format("{}:\n{}", cells_[index].label, report.said));
    switch (report.kind) {
      case WorkerReport::Kind::ended: ended(index, report, seconds); break;
      case WorkerReport::Kind::elsewhere: elsewhere_.push_back(index); break;
      case WorkerReport::Kind::failed:
        remove(worker);  // nobody knows what state it is in
        failed(index, report.lines, 1);
        break;
      case WorkerReport::Kind::progress: break;
    }
  }

  void ended(std::size_t index, const WorkerReport& report, double seconds) {
    const RunRow row = row_of_folder(index);
    table_.set(row);
    if (report.was_finished) {
      ++done_before_;
    } else {
      cost_done_ += cells_[index].cost;
      say_ended(index, row, seconds);
    }
    if (report.exit == Exit::diverged && options_.strict && options_.fail_fast && !stopping_)
      stop("a run diverged; --fail-fast ends the others");
  }

  void failed(std::size_t index, const std::vector<std::string>& lines, int exit_code) {
    cost_done_ += cells_[index].cost;
    RunRow row = row_of_folder(index);
    row.status = name_of(RunStatus::failed);
    row.exit_code = exit_code;
    table_.set(row);
    for (const std::string& line : lines) log_.error(Error(fmt::format("{}: {}", cells_[index].label, line)));
    if (options_.fail_fast && !stopping_) stop("a run failed; --fail-fast ends the others");
  }

  /// A worker died in the middle of a run.
  void buried(Worker& worker) {
    const std::size_t index = *worker.cell;
    const ProcessEnd end = worker.process.wait();
    remove(worker);
    const std::string what = fmt::format("its worker ended with {}", end.words());
    if (!stopping_ && ++crashes_[index] == 1) {
      log_.warning(fmt::format("{}: {}; it is tried once more, at the end", cells_[index].label, what));
      queue_.push_back(index);
      return;
    }
    try {
      const FileLock lock(cells_[index].folder + "/lock");
      write_failure(cells_[index].folder + "/manifest.json", what);
    } catch (const Error&) {
      // Without a folder, or with another process in it, there is nothing to correct.
    }
    failed(index, {what + "; see " + cells_[index].folder + "/run.log"}, end.signal != 0 ? 128 + end.signal : end.code);
  }

  void stop(const std::string& why) {
    stopping_ = true;
    log_.note(why);
    const int signal = interrupted() != 0 ? interrupted() : SIGTERM;
    for (const auto& worker : workers_) worker->process.send_signal(signal);
  }

  /// GridCells that another process had in hand may be finished by now, or free. True when there are some to look at,
  /// once.
  bool look_again_elsewhere() {
    if (looked_again_ || elsewhere_.empty()) return false;
    looked_again_ = true;
    queue_.assign(elsewhere_.begin(), elsewhere_.end());
    elsewhere_.clear();
    return true;
  }

  RunRow row_of_folder(std::size_t index) const {
    return run_row(static_cast<std::int64_t>(index), cells_[index].id, cells_[index].folder);
  }

  void write_table() {
    table_.write();
    table_written_ = Clock::now();
  }

  void say_ended(std::size_t index, const RunRow& row, double seconds) {
    if (style_ == ProgressStyle::quiet) return;
    log_.note(fmt::format(
        "{}: {}, {} s", cells_[index].label,
        row.final_loss ? fmt::format("{}, loss {}", row.verdict, significant(*row.final_loss, 4)) : row.status,
        significant(seconds, 3)));
    next_plain_ = Clock::now() + std::chrono::seconds(5);
  }

  std::string progress() const {
    double done = cost_done_;
    for (const auto& worker : workers_)
      if (worker->cell) done += worker->share * cells_[*worker->cell].cost;
    const auto count = [&](auto condition) {
      return std::count_if(table_.rows().begin(), table_.rows().end(), condition);
    };
    const auto failed = count([](const RunRow& row) { return row.status == "failed"; });
    std::string text = fmt::format("{}/{} runs done  {} at work", count([](const RunRow& row) { return row.done(); }),
                                   cells_.size(), busy());
    if (failed > 0) text += fmt::format("  {} failed", failed);
    if (cost_to_do_ > 0) text += fmt::format("  {:.0f} %", 100 * std::min(done / cost_to_do_, 1.0));
    if (done > 0 && cost_to_do_ > done)
      text += fmt::format("  {} left", duration_text(seconds_since(start_) * (cost_to_do_ - done) / done));
    return text;
  }

  void show_progress() {
    if (style_ == ProgressStyle::terminal && Clock::now() >= next_status_) {
      next_status_ = Clock::now() + milliseconds(200);
      log_.show_status(progress().substr(0, std::max<std::size_t>(progress_columns(), 2) - 1));
    }
    if (style_ == ProgressStyle::plain && Clock::now() >= next_plain_) {
      next_plain_ = Clock::now() + std::chrono::seconds(5);
      log_.line(progress());
    }
  }

  Exit finish() {
    // The folders have the last word, except for what only this process saw.
    for (std::size_t i = 0; i < cells_.size(); ++i)
      if (table_.rows()[i].status != name_of(RunStatus::failed)) table_.set(row_of_folder(i));
    write_table();
    if (done_before_ > 0 && !options_.quiet)
      log_.note(fmt::format("{} of {} runs had been done before", done_before_, cells_.size()));
    for (const std::size_t index : elsewhere_)
      if (!table_.rows()[index].done())
        log_.warning(fmt::format("{}: another process is working in {}; not counted as failed", cells_[index].label,
                                 cells_[index].folder));
    if (interrupted()) return Exit::interrupted;
    for (std::size_t i = 0; i < cells_.size(); ++i) {
      const RunRow& row = table_.rows()[i];
      const bool is_elsewhere = std::find(elsewhere_.begin(), elsewhere_.end(), i) != elsewhere_.end();
      const bool is_good = row.status == name_of(RunStatus::finished) ||
                           (row.status == name_of(RunStatus::diverged) && !options_.strict) || is_elsewhere;
      if (!is_good) return Exit::cell_failed;
    }
    return Exit::done;
  }

  const Grid& grid_;
  const std::vector<GridCell>& cells_;
  const SweepOptions& options_;
  RunsTable& table_;
  Log& log_;
  ProgressStyle style_;

  std::vector<std::unique_ptr<Worker>> workers_;
  std::deque<std::size_t> queue_;       ///< indices of cells to be given out
  std::vector<std::size_t> elsewhere_;  ///< indices of cells that another process had in hand
  std::vector<int> crashes_;
  bool stopping_ = false;
  bool looked_again_ = false;
  std::size_t done_before_ = 0;

  double cost_to_do_ = 0, cost_done_ = 0;
  Clock::time_point start_ = Clock::now();
  Clock::time_point next_status_ = start_, next_plain_ = start_ + std::chrono::seconds(5), table_written_ = start_;
};

/// How many cells at a time. Throws Error where so many as were asked for, or a single one, do not fit into memory.
std::int64_t jobs_in_memory(const GridCells& cells, const SweepOptions& options, const std::vector<RunRow>& rows,
                            Log& log) {
  const std::int64_t jobs = options.jobs.value_or(default_jobs(cells.cells, usable_cores()));
  const auto available = available_memory();
  if (options.force || !available) return jobs;
  double program = 0;
  std::vector<double> demands;
  std::vector<std::string> refusals;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const GridCell& cell = cells.cells[i];
    if (rows[i].done()) continue;
    program = std::max(program, cell.memory.program);
    demands.push_back(cell.memory.own);
    if (!cell.memory_refusal.empty()) refusals.push_back(cell.label + ": " + cell.memory_refusal);
  }
  if (!refusals.empty()) throw Error(std::move(refusals));
  const std::int64_t fitting =
      std::max<std::int64_t>(jobs_within(demands, jobs, *available - static_cast<std::int64_t>(program)), 1);
  if (fitting == jobs) return jobs;
  const std::string words = fmt::format("the {} largest runs need about {} of memory together and {} are available",
                                        std::min(jobs, static_cast<std::int64_t>(demands.size())),
                                        bytes_in_words(program + largest_together(demands, jobs)),
                                        bytes_in_words(static_cast<double>(*available)));
  if (options.jobs)
    throw Error(
        fmt::format("--jobs {}: {}; write --jobs {}, or --force to run so many all the same", jobs, words, fitting));
  log.note(fmt::format("{} at a time instead of {}: {}", fitting == 1 ? "one run" : fmt::format("{} runs", fitting),
                       jobs, words));
  return fitting;
}

}  // namespace

std::int64_t default_jobs(const std::vector<GridCell>& cells, std::int64_t cores) {
  std::int64_t threads = 1;
  for (const GridCell& cell : cells) threads = std::max(threads, cell.threads);
  return std::clamp<std::int64_t>(cores / threads, 1, static_cast<std::int64_t>(cells.size()));
}

RunsTable runs_table(const GridCells& cells) {
  std::vector<RunRow> rows;
  for (std::size_t i = 0; i < cells.cells.size(); ++i)
    rows.push_back({.index = static_cast<std::int64_t>(i), .id = cells.cells[i].id, .path = cells.cells[i].folder});
  return RunsTable(cells.folder, std::move(rows));
}

Exit run_sweep(const Grid& grid, const GridCells& cells, const SweepOptions& options, RunsTable& table, Log& log) {
  table.read_folders();
  SweepOptions settled = options;
  settled.jobs = jobs_in_memory(cells, options, table.rows(), log);
  return Sweep(grid, cells, settled, table, log).run();
}

}  // namespace gradflow
