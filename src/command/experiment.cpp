#include "command/experiment.h"

#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "command/device.h"
#include "command/environment.h"
#include "command/memory_demand.h"
#include "command/process_settings.h"
#include "config/identity.h"
#include "config/resolved.h"
#include "core/build_info.h"
#include "core/files.h"
#include "core/interrupt.h"
#include "core/machine.h"
#include "core/process.h"
#include "kernels/backend.h"
#include "model/description.h"
#include "output/log.h"
#include "output/manifest.h"
#include "output/progress.h"
#include "output/run_folder.h"
#include "train/checkpoint.h"
#include "train/quantity_recorder.h"
#include "train/recorder.h"
#include "train/summary.h"
#include "train/trainer.h"

namespace gradflow {
namespace {

/// Feeds the progress line.
class ProgressObserver final : public Observer {
 public:
  ProgressObserver(Progress& progress, const Recorder& recorder, std::int64_t steps)
      : progress_(progress), recorder_(recorder), steps_(steps) {}

  void step_done(const StepResult& result) override {
    progress_.update({.step = result.step,
                      .steps = steps_,
                      .tokens = result.tokens,
                      .loss = result.loss,
                      .learning_rate = result.learning_rate,
                      .grad_norm = result.grad_norm,
                      .spikes = recorder_.spike_episodes()});
  }

 private:
  Progress& progress_;
  const Recorder& recorder_;
  std::int64_t steps_;
};

Manifest manifest_of(const Prepared& prepared) {
  const BuildInfo& build = build_info();
  const Environment machine = environment();
  return {.version = std::string(build.version),
          .git_revision = std::string(build.git_revision),
          .compiler = std::string(build.compiler),
          .libtorch = machine.libtorch,
          .blas = machine.blas + ", " + machine.blas_kernel,
          .cpu = cpu_model(),
          .host = host_name(),
          .device = prepared.device.str(),
          .backend = std::string(name_of(chosen_backend(prepared.config, prepared.device))),
          .threads = prepared.config.compute.threads,
          .flush_denormals = prepared.config.compute.flush_denormals,
          .command_line = command_line(),
          .started = utc_text(std::chrono::system_clock::now())};
}

/// Writes the manifest anew with how the run stands now.
void set_status(Manifest& manifest, const RunFolder& folder, RunStatus status, std::string reason = {}) {
  manifest.status = status;
  manifest.reason = std::move(reason);
  if (status != RunStatus::running) manifest.ended = std::chrono::system_clock::now();
  write_manifest(folder.file("manifest.json"), manifest);
}

/// LibTorch says in its own words, behind an exception of its own, that it got no memory.
bool is_out_of_memory(const std::exception& error) {
  return dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
         dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr ||
         std::string_view(error.what()).find("can't allocate memory") != std::string_view::npos;
}

/// What a person should know who goes on with a run in other surroundings.
void warn_of_changes(const RunFolder& folder, std::vector<std::string> changes, Log& log) {
  for (const ConfigChange& change : folder.changes())
    if (change.key == "compute.threads")
      changes.insert(changes.begin(), change.key + ' ' + change.there + " → " + change.here);
  if (!changes.empty())
    log.warning(
        fmt::format("{}: from here on the last digits may differ from those of a run that was never interrupted",
                    fmt::join(changes, ", ")));
}

/// `when`: "after step 7".
ExperimentResult interrupted_run(const RunFolder& folder, Log& log, Manifest& manifest, const std::string& when) {
  const std::string reason = fmt::format("{} {}", signal_name(interrupted()), when);
  set_status(manifest, folder, RunStatus::interrupted, reason);
  log.warning("interrupted by " + reason + "; --resume goes on");
  return {.exit = Exit::interrupted, .folder = folder.path()};
}

ExperimentResult train(const Prepared& prepared, const ExperimentOptions& options, const RunFolder& folder, Log& log,
                       Manifest& manifest, const std::vector<std::string>& changes) {
  const Config& config = prepared.config;
  Stack stack(config, prepared.device, segment_factory(config, prepared.device));
  Recorder recorder(config, stack, prepared.device, folder.path());
  RunAccount account;
  Progress progress(log, progress_style(options.quiet));
  ProgressObserver shown(progress, recorder, config.train.steps);
  std::vector<Observer*> observers = {&recorder, &account, &shown};
  std::optional<QuantityRecorder> quantities;
  if (QuantityRecorder::is_asked_for(config.record)) {
    quantities.emplace(config, stack, *prepared.source, prepared.device, folder.path(),
                       [&](double seconds) { recorder.add_recording_seconds(seconds); });
    observers.push_back(&*quantities);
  }
  if (options.observer != nullptr) observers.push_back(options.observer);
  Checkpoints checkpoints(folder.path(), config, stack.store(), observers,
                          [&](std::string_view text) { log.warning(text); });
  Trainer trainer(config, stack, *prepared.source, prepared.device, observers, &checkpoints);
  if (folder.unfinished()) {
    trainer.resume();
    const std::int64_t step = trainer.position().step;
    manifest.resumed.push_back({step, utc_text(std::chrono::system_clock::now()), changes});
    set_status(manifest, folder, RunStatus::running);
    folder.update_config();
    log.note(step == 0 ? "no checkpoint: from step 1" : fmt::format("going on after step {}", step));
  }

  Ending ending;
  try {
    ending = trainer.run();
    if (!ending.interrupted) recorder.finish();
  } catch (...) {
    progress.finish();
    throw;
  }
  progress.finish();
  if (ending.interrupted)
    return interrupted_run(folder, log, manifest, fmt::format("after step {}", trainer.position().step));

  const RunSummary summary{config, stack, prepared.source->facts(), account, recorder, ending.stopped_at};
  write_file_atomically(folder.file("summary.json"), summary.json().dump(2) + "\n");
  set_status(manifest, folder, ending.stopped_at ? RunStatus::diverged : RunStatus::finished, summary.stop_reason());
  ExperimentResult result{.folder = folder.path(), .table = summary.text() + "\nfiles in " + folder.path() + "\n"};
  log.record(result.table);
  if (ending.stopped_at) {
    result.exit = Exit::diverged;
    log.warning(summary.stop_reason() + "; set train.on_nonfinite to continue or skip to go on");
  }
  return result;
}

}  // namespace

ExperimentResult run_experiment(const Prepared& prepared, const ExperimentOptions& options, std::ostream& terminal) {
  const std::string hash = data_files_hash(prepared.config);
  nlohmann::ordered_json resolved = to_json(prepared.config);
  resolved["derived"] = derived_json(prepared.config, make_layout(prepared.config), hash);

  const std::string path =
      options.out.empty() ? default_run_folder(prepared.config.name, run_id(prepared.config, hash)) : options.out;
  const auto there = status_in_manifest(path + "/manifest.json");
  const bool has_ended = there == RunStatus::finished || there == RunStatus::diverged;
  const std::string damaged = has_ended ? damaged_result(path) : "";
  const bool is_done = has_ended && damaged.empty() && !options.overwrite;
  if (!options.force && !is_done)
    if (const auto refusal = memory_refusal(prepared.config, prepared.device)) throw Error(*refusal);
  const RunFolder folder = RunFolder::open({path, options.overwrite, options.resume}, resolved);
  Log log(terminal, options.quiet);
  if (folder.finished()) {
    log.note(fmt::format("{}: already {}; --overwrite runs it again", folder.path(), name_of(*folder.finished())));
    return {.exit = *folder.finished() == RunStatus::diverged ? Exit::diverged : Exit::done,
            .folder = folder.path(),
            .was_finished = true};
  }
  log.open_file(folder.file("run.log"));
  if (folder.unfinished() && !damaged.empty())
    log.warning(folder.file(damaged) + ": missing or damaged; the finished run is made whole");
  Manifest manifest = manifest_of(prepared);
  std::vector<std::string> changes;
  std::optional<std::string> manifest_before;
  if (folder.unfinished()) {
    if (there) manifest_before = read_file(folder.file("manifest.json"));
    changes = changes_of_surroundings(folder.file("manifest.json"), manifest);
    continue_history(folder.file("manifest.json"), manifest);
  }
  set_status(manifest, folder, RunStatus::running);
  try {
    warn_of_changes(folder, changes, log);
    set_up_process(prepared.config.compute);
    return train(prepared, options, folder, log, manifest, changes);
  } catch (const Interrupted&) {  // before there was anything to keep
    return interrupted_run(folder, log, manifest, "while the run was starting");
  } catch (const OfOtherVersion&) {  // which may go on with the run that this one has not touched
    if (manifest_before) write_file_atomically(folder.file("manifest.json"), *manifest_before);
    throw;
  } catch (const std::exception& error) {
    const bool no_memory = is_out_of_memory(error);
    // The folder says what happened even if nobody kept the terminal; an error while saying so must not hide the first.
    // LibTorch's messages go on with a stack trace.
    const std::string_view what = error.what();
    try {
      set_status(manifest, folder, RunStatus::failed,
                 no_memory ? "not enough memory" : std::string(what.substr(0, what.find('\n'))));
    } catch (const Error&) {
    }
    if (no_memory) throw std::bad_alloc();
    throw;
  }
}

}  // namespace gradflow
