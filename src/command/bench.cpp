#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "command/command.h"
#include "command/environment.h"
#include "command/gemm_share.h"
#include "command/memory_demand.h"
#include "command/prepare.h"
#include "command/process_settings.h"
#include "config/resolved.h"
#include "core/build_info.h"
#include "core/clock.h"
#include "core/interrupt.h"
#include "core/machine.h"
#include "core/memory.h"
#include "core/numbers.h"
#include "core/phases.h"
#include "core/process.h"
#include "core/statistics.h"
#include "core/temporary_folder.h"
#include "measure/matrix_products.h"
#include "output/csv_table.h"
#include "output/table.h"
#include "output/text_table.h"
#include "train/step_times.h"

namespace gradflow {
namespace {

struct Options {
  std::string config;
  std::vector<std::string> overrides;
  std::vector<std::string> backends;
  std::int64_t repeat = 5;
  std::int64_t steps = 5;
  std::string clock = "wall";
  bool steps_only = false;
  bool phases = false;
  bool json = false;
};

/// Milliseconds, one for each repeat.
using Times = std::vector<double>;

double least(const Times& times) { return *std::min_element(times.begin(), times.end()); }

/// The steps of one kind, repeat by repeat.
struct Series {
  Times times;
  std::vector<PhaseSeconds> phases;  ///< what each of them was spent on; zeros where nobody asked

  void add(double seconds, const PhaseSeconds& spent_on) {
    times.push_back(1e3 * seconds);
    phases.push_back(spent_on);
  }
};

/// What was measured of one backend.
struct Measured {
  std::string backend;
  Prepared prepared;
  Series recorded, unrecorded;
  std::int64_t tokens = 0;  // a step
  std::optional<double> start_up;
  std::optional<std::int64_t> memory;

  /// Of each repeat by itself, so that a machine that changes its speed between two of them does not matter.
  double recording_cost() const {
    Times ratios;
    for (std::size_t r = 0; r < recorded.times.size(); ++r)
      ratios.push_back(recorded.times[r] / unrecorded.times[r] - 1);
    return *median(ratios);
  }
};

/// One row of the results.
struct Row {
  const char* recording;
  const Series& series;
  std::optional<double> recording_cost;  ///< where every layer's row was recorded
};

std::array<Row, 2> rows_of(const Measured& backend) {
  return {Row{"standard", backend.recorded, backend.recording_cost()}, Row{"none", backend.unrecorded, {}}};
}

/// The backends of `options`, or those that serve the configuration.
std::vector<Measured> prepared_backends(const Options& options) {
  const auto with = [&](const std::string& backend) {
    std::vector<std::string> overrides = options.overrides;
    overrides.push_back("compute.backend=" + backend);
    try {
      return Measured{.backend = backend, .prepared = prepare(options.config, overrides)};
    } catch (const Error& error) {
      throw named_by_options(error, {{"--backend", "compute.backend"}});
    }
  };
  std::vector<Measured> backends;
  if (!options.backends.empty()) {
    for (const std::string& backend : options.backends) backends.push_back(with(backend));
    return backends;
  }
  backends.push_back(with("aten"));  // serves everything: what is wrong here is wrong with the configuration
  try {
    backends.push_back(with("fused"));
  } catch (const Error&) {
  }
  return backends;
}

ClockKind clock_of(const Options& options) { return options.clock == "wall" ? ClockKind::wall : ClockKind::processor; }

void measure_steps(Measured& backend, const Options& options) {
  const TemporaryFolder folder;
  const StepTimes times = time_steps(backend.prepared.config, *backend.prepared.source, backend.prepared.device,
                                     options.steps, folder.path(), clock_of(options), options.phases);
  backend.recorded.add(times.recorded, times.recorded_phases);
  backend.unrecorded.add(times.unrecorded, times.unrecorded_phases);
  backend.tokens = times.tokens;
}

/// A run of two steps in a process of its own: what it holds at its peak, and what it takes beside its steps.
void measure_process(Measured& backend, const Options& options) {
  const TemporaryFolder folder;
  std::vector<std::string> words = {"gradflow", "run", options.config, "--quiet", "--out", folder / "run"};
  std::vector<std::string> overrides = options.overrides;
  for (const char* own : {"train.steps=2", "train.evaluate_every=0", "record.steps_every=1", "record.layers_every=1",
                          "record.quantities=standard", "record.tensors=false", "checkpoint.every=0"})
    overrides.emplace_back(own);
  overrides.push_back("compute.backend=" + backend.backend);
  for (const std::string& override : overrides) words.insert(words.end(), {"--set", override});

  const MeasuredEnd end = run_process("/proc/self/exe", words);
  give_up_if_interrupted();
  if (end.code != static_cast<int>(Exit::done))
    throw Error(
        fmt::format("the run that measures memory and start-up ended with exit code {}; --steps-only leaves "
                    "it out",
                    end.code));
  const CsvTable timing = read_csv(folder / "run/timing.csv", timing_columns());
  const std::optional<double> steps = timing.number(timing.rows() - 1, timing.column("seconds"));
  backend.start_up = end.seconds - steps.value_or(0);
  backend.memory = end.peak_memory;
}

/// Everything that was measured in one call.
struct Bench {
  const Options& options;
  std::vector<Measured> backends;
  std::optional<MatrixProductClock> products;
  Times product_times;

  const Config& config() const { return backends.front().prepared.config; }
  std::optional<double> gemm_share(const Times& times) const {
    return products ? std::optional(least(product_times) / least(times)) : std::nullopt;
  }
};

Bench measure(const Options& options) {
  Bench bench{options, prepared_backends(options), {}, {}};
  const Config& config = bench.config();
  if (clock_of(options) == ClockKind::processor && !bench.backends.front().prepared.device.is_cpu())
    throw Error("--clock processor: the work of a GPU is not the processor's; write wall");
  if (options.phases && !bench.backends.front().prepared.device.is_cpu())
    throw Error("--phases: on a GPU work is queued in one phase and done in another; write compute.device=cpu");
  for (const Measured& backend : bench.backends)
    if (const auto refusal = memory_refusal(backend.prepared.config, backend.prepared.device, /*can_be_forced=*/false))
      throw Error(*refusal);
  // First: the kernel counts to a process's peak what its parent held when it began.
  if (!options.steps_only)
    for (Measured& backend : bench.backends) measure_process(backend, options);
  set_up_process(config.compute);
  if (auto products = matrix_products(config, make_layout(config)))
    bench.products.emplace(std::move(*products), config.compute, config.train.accumulation,
                           bench.backends.front().prepared.device);
  // Everything takes its turn in every repeat: what slows the machine down for a while slows down all of it.
  for (std::int64_t r = 0; r < options.repeat; ++r) {
    give_up_if_interrupted();
    if (bench.products) bench.product_times.push_back(1e3 * bench.products->seconds(clock_of(options)));
    for (Measured& backend : bench.backends) measure_steps(backend, options);
  }
  return bench;
}

nlohmann::ordered_json machine_json(const Config& config, at::Device device) {
  const BuildInfo& build = build_info();
  const Environment found = environment();
  return {{"cpu", cpu_model()},
          {"cores", found.cores},
          {"device", device.str()},
          {"cuda", found.cuda},
          {"threads", config.compute.threads},
          {"libtorch", found.libtorch},
          {"blas", found.blas + ", " + found.blas_kernel},
          {"simd", found.simd},
          {"compiler", build.compiler},
          {"gradflow", build.version},
          {"git_revision", build.git_revision}};
}

/// Milliseconds of the fastest repeat, phase by phase; last what belongs to none.
std::array<double, phase_count + 1> phase_times(const Series& series) {
  const Times& times = series.times;
  const auto fastest = std::min_element(times.begin(), times.end()) - times.begin();
  std::array<double, phase_count + 1> ms{};
  double sum = 0;
  for (std::size_t p = 0; p < phase_count; ++p)
    sum += ms[p] = 1e3 * series.phases[static_cast<std::size_t>(fastest)][p];
  ms.back() = least(times) - sum;
  return ms;
}

std::string_view phase_name(std::size_t index) { return index < phase_count ? names_of(Phase{})[index] : "other"; }

nlohmann::ordered_json result_json(const Bench& bench, const Measured& backend, const Row& row) {
  const Times& times = row.series.times;
  nlohmann::ordered_json json = {{"backend", backend.backend},
                                 {"recording", row.recording},
                                 {"ms_min", least(times)},
                                 {"ms_median", *median(times)},
                                 {"tokens_per_s", static_cast<double>(backend.tokens) / least(times) * 1e3}};
  const auto add = [&](const char* key, const auto& value) { json[key] = value ? nlohmann::json(*value) : nullptr; };
  add("gemm_share", bench.gemm_share(times));
  if (row.recording_cost) json["recording_cost"] = *row.recording_cost;
  add("memory_bytes", backend.memory);
  add("start_up_s", backend.start_up);
  json["ms"] = times;
  if (bench.options.phases) {
    const auto ms = phase_times(row.series);
    for (std::size_t p = 0; p < ms.size(); ++p)
      json["phases"][std::string(phase_name(p))] = {{"ms", ms[p]}, {"share", ms[p] / least(times)}};
  }
  return json;
}

nlohmann::ordered_json json_of(const Bench& bench) {
  nlohmann::ordered_json json;
  json["clock"] = bench.options.clock;
  json["machine"] = machine_json(bench.config(), bench.backends.front().prepared.device);
  json["config"] = to_json(bench.config());
  if (bench.products) {
    const double best = least(bench.product_times);
    json["matrix_products"] = {{"ms_min", best},
                               {"ms_median", *median(bench.product_times)},
                               {"gflops", bench.products->operations() / best / 1e6},
                               {"ms", bench.product_times}};
  }
  json["results"] = nlohmann::json::array();
  for (const Measured& backend : bench.backends)
    for (const Row& row : rows_of(backend)) json["results"].push_back(result_json(bench, backend, row));
  return json;
}

/// Where the fastest repeat of each went.
std::string phases_text(const Bench& bench) {
  std::vector<std::string> heading = {"backend", "recording"};
  for (std::size_t p = 0; p <= phase_count; ++p) {
    heading.emplace_back(phase_name(p));
    std::replace(heading.back().begin(), heading.back().end(), '_', ' ');
  }
  TextTable table(heading);
  for (const Measured& backend : bench.backends)
    for (const Row& row : rows_of(backend)) {
      std::vector<std::string> cells = {backend.backend, row.recording};
      for (const double ms : phase_times(row.series))
        cells.push_back(fmt::format("{} ({:.0f} %)", significant(ms, 3), 100 * ms / least(row.series.times)));
      table.add(cells);
    }
  return "\nmilliseconds of the fastest repeat by phase\n" + table.text();
}

std::string text_of(const Bench& bench) {
  const ModelConfig& model = bench.config().model;
  const Environment found = environment();
  std::string text =
      fmt::format("{}, {} thread{}, LibTorch {}, {}\n{} blocks, width {}, {} {}: {} tokens a step in batches of {}{}\n",
                  cpu_model(), bench.config().compute.threads, bench.config().compute.threads == 1 ? "" : "s",
                  found.libtorch, bench.backends.front().prepared.device.str(), model.depth, model.width,
                  name_of(model.placement), name_of(bench.config().compute.dtype), bench.backends.front().tokens,
                  bench.config().train.batch, clock_of(bench.options) == ClockKind::wall ? "" : "; processor time");
  if (bench.products)
    text += fmt::format("matrix products alone {} ms a step, {} GFLOP/s\n", significant(least(bench.product_times), 3),
                        significant(bench.products->operations() / least(bench.product_times) / 1e6, 3));
  TextTable table(
      {"backend", "recording", "ms min", "ms median", "tokens/s", "GEMM share", "cost", "memory", "start-up"});
  std::vector<double> shares;
  for (const Measured& backend : bench.backends)
    for (const Row& row : rows_of(backend)) {
      const Times& times = row.series.times;
      const std::optional<double> share = bench.gemm_share(times);
      if (share) shares.push_back(*share);
      table.add({backend.backend, row.recording, significant(least(times), 4), significant(*median(times), 4),
                 fmt::format("{:.0f}", static_cast<double>(backend.tokens) / least(times) * 1e3),
                 share ? gemm_share_text(*share) : "–",
                 row.recording_cost ? fmt::format("{:+.1f} %", 100 * *row.recording_cost) : "",
                 backend.memory ? bytes_in_words(static_cast<double>(*backend.memory)) : "–",
                 backend.start_up ? fmt::format("{:.2f} s", *backend.start_up) : "–"});
    }
  return text + "\n" + table.text() + gemm_share_note(shares) + (bench.options.phases ? phases_text(bench) : "");
}

Bench tidily_measured(const Options& options) {
  catch_interrupts();
  try {
    return measure(options);
  } catch (const Interrupted&) {  // the temporary folders are gone by now
    end_by_signal();
  }
}

Exit run(const Options& options) {
  const Bench bench = tidily_measured(options);
  fmt::print("{}", options.json ? json_of(bench).dump(2) + "\n" : text_of(bench));
  return Exit::done;
}

}  // namespace

void add_bench(CLI::App& program, Action& action) {
  CLI::App* command = program.add_subcommand("bench", "times a training step, backend by backend");
  auto options = std::make_shared<Options>();
  command->add_option("CONFIG", options->config, "configuration file (JSON)")->required()->type_name("");
  add_set_option(*command, options->overrides);
  command->add_option("--backend", options->backends, "aten, fused or auto; repeatable; without it each that can serve")
      ->type_name("NAME")
      ->type_size(1)
      ->allow_extra_args(false)
      ->check(CLI::IsMember({"aten", "fused", "auto"}).description(""));
  command->add_option("--repeat", options->repeat, "short runs of each backend, in turn; default 5")
      ->type_name("N")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000}));
  command->add_option("--steps", options->steps, "timed steps of each kind in such a run; default 5")
      ->type_name("N")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000}));
  command
      ->add_option("--clock", options->clock,
                   "wall (default), or processor: the time that the process spent on a processor, for\n"
                   "a machine that others use as well")
      ->type_name("NAME")
      ->check(CLI::IsMember({"wall", "processor"}));
  command->add_flag("--steps-only", options->steps_only,
                    "no memory and start-up, for which each backend runs once more as a process of its own");
  command->add_flag("--phases", options->phases,
                    "also what a step is spent on: data, forward, backward, gradient norms, optimizer, recording;\n"
                    "milliseconds and share; on the CPU. The clocks of many small steps show in them a little");
  command->add_flag("--json", options->json, "the same and every repeat's times as JSON, for scripts");
  command->footer(
      "Milliseconds of one step: data, forward, backward, norms, update. Recording standard: every layer of that step\n"
      "is measured and written; none: nothing is. The two alternate step by step within real runs, whose files go to\n"
      "a temporary folder; a repeat counts with the mean of its steps. GEMM share: the time of the products with\n"
      "weight matrices alone, by the same BLAS in the same call, divided by that of the step (minima). Cost: of\n"
      "recording, the median over repeats. Memory: peak resident; start-up: all of a process but its steps.");
  command->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace gradflow
