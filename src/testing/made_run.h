#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "analysis/profile.h"
#include "analysis/spike_watch.h"
#include "analysis/verdict.h"
#include "config/config.h"
#include "config/resolved.h"
#include "core/build_info.h"
#include "core/files.h"
#include "output/manifest.h"
#include "output/table.h"

// Run folders for tests of what reads them, made without training and without LibTorch: the real files, with numbers
// that the test chooses.

namespace gradflow::testing {

/// A run as it shall look afterwards. Its layers are those of a Transformer.
struct MadeRun {
  Config config;
  RunStatus status = RunStatus::finished;
  std::string reason;
  std::string version = std::string(build_info().version);
  std::string files_hash;                       ///< of data.files; empty: not written
  std::int64_t steps = 20;                      ///< that were made; every one is a row, layers at the first and last
  double loss = 1.7;                            ///< of every step
  std::optional<double> unigram_entropy = 3.9;  ///< in nats
  double gradient_rate = 0;                     ///< of ln ‖∂L/∂x‖ for each block away from the output
  double variance_rate = 0;                     ///< of ln stream_variance for each block away from the input
  double seconds_per_step = 0.5;
  std::vector<SpikeRow> spikes;
};

/// A Transformer of `depth` blocks; what else matters the test sets.
inline Config transformer_config(std::int64_t depth, Placement placement, std::int64_t seed) {
  Config config;
  config.name = "study";
  config.seed = seed;
  config.model.depth = depth;
  config.model.placement = placement;
  return config;
}

inline void write_made_layers(const std::string& path, const MadeRun& run) {
  CsvFile file(path, layers_columns());
  const std::int64_t depth = run.config.model.depth;
  const auto write = [&](std::int64_t step, std::int64_t layer, const char* sublayer) {
    std::vector<Cell> row(layers_columns().size());
    const auto set = [&](std::string_view name, Cell value) {
      const auto found = std::find_if(layers_columns().begin(), layers_columns().end(),
                                      [&](const Column& column) { return column.name == name; });
      row[static_cast<std::size_t>(found - layers_columns().begin())] = std::move(value);
    };
    row[0] = step, row[1] = layer, row[2] = std::string(sublayer);
    set("grad_norm", 0.5);
    set("nonfinite", std::int64_t{0});
    if (layer <= depth) {
      set("stream_grad_norm", std::exp(run.gradient_rate * static_cast<double>(depth - layer)));
      set("stream_variance", std::exp(run.variance_rate * static_cast<double>(layer)));
    }
    file.write(row);
  };
  for (const std::int64_t step : {std::int64_t{1}, run.steps}) {
    if (step < 1 || (step == 1 && run.steps == 1 && step != run.steps)) continue;
    write(step, 0, "embedding");
    for (std::int64_t layer = 1; layer <= depth; ++layer) write(step, layer, "attention"), write(step, layer, "ffn");
    write(step, depth + 1, "head");
    if (run.steps == 1) break;
  }
}

inline nlohmann::ordered_json made_profile(std::int64_t depth, double rate, Flow flow) {
  std::vector<double> values;
  for (std::int64_t l = 1; l <= depth; ++l)
    values.push_back(std::exp(rate * static_cast<double>(flow == Flow::gradient ? depth - l : l)));
  const ProfileFit fit = fit_profile(values, flow);
  nlohmann::ordered_json json = {
      {"first", values.front()}, {"last", values.back()}, {"not_finite_blocks", fit.not_finite}};
  json["ratio"] = fit.ratio ? nlohmann::ordered_json(*fit.ratio) : nlohmann::ordered_json();
  json["rate_per_block"] = fit.exponential ? nlohmann::ordered_json(fit.exponential->slope) : nlohmann::ordered_json();
  return json;
}

/// Writes the folder. A `running` run has no summary.json.
inline void make_run(const std::string& path, const MadeRun& run) {
  create_folders(path);
  const auto file = [&](const char* name) { return path + '/' + name; };
  nlohmann::ordered_json config = to_json(run.config);
  config["derived"] = {{"parameters", 1234}};
  if (!run.files_hash.empty()) config["derived"]["data_files_hash"] = run.files_hash;
  write_file_atomically(file("config.json"), config.dump(2) + '\n');
  write_manifest(file("manifest.json"), {.version = run.version, .status = run.status, .reason = run.reason});

  const std::vector<double> losses(static_cast<std::size_t>(run.steps), run.loss);
  const auto number = [](std::optional<double> value) {
    return value && std::isfinite(*value) ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
  };
  const auto verdict = verdict_of(losses, run.unigram_entropy, run.status == RunStatus::diverged);
  const auto count = [&](SpikeSeries series) {
    return std::count_if(run.spikes.begin(), run.spikes.end(),
                         [&](const SpikeRow& row) { return row.series == series; });
  };
  const std::int64_t depth = run.config.model.depth;
  const nlohmann::ordered_json profiles = {
      {"stream_grad_norm", made_profile(depth, run.gradient_rate, Flow::gradient)},
      {"stream_variance", made_profile(depth, run.variance_rate, Flow::activation)}};
  nlohmann::ordered_json summary = {
      {"verdict", verdict ? nlohmann::ordered_json(name_of(*verdict)) : nlohmann::ordered_json()},
      {"steps", run.steps},
      {"first_loss", number(run.loss)},
      {"final_loss", number(run.loss)},
      {"unigram_entropy", number(run.unigram_entropy)},
      {"entropy_rate", 1.2},
      {"spikes", {{"loss", count(SpikeSeries::loss)}, {"grad_norm", count(SpikeSeries::grad_norm)}}},
      {"profiles", {{"first_step", profiles}, {"last_step", profiles}}}};
  if (run.status == RunStatus::finished || run.status == RunStatus::diverged)
    write_file_atomically(file("summary.json"), summary.dump(2) + '\n');

  CsvFile steps(file("steps.csv"), steps_columns());
  CsvFile timing(file("timing.csv"), timing_columns());
  for (std::int64_t s = 1; s <= run.steps; ++s) {
    steps.write(std::array<Cell, 12>{s, s * 64, run.config.train.learning_rate, run.loss, 1.0, 1.0, 10.0, 0.1, Cell{},
                                     std::int64_t{0}, std::int64_t{0}, std::int64_t{0}});
    timing.write(std::array<Cell, 4>{s, run.seconds_per_step * static_cast<double>(s), 100.0, 0.01});
  }
  write_made_layers(file("layers.csv"), run);
  CsvFile spikes(file("spikes.csv"), spikes_columns());
  for (const SpikeRow& row : run.spikes) spikes.write(cells(row));
}

}  // namespace gradflow::testing
