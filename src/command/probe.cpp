#include "train/probe.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "analysis/probe_profiles.h"
#include "command/command.h"
#include "command/device.h"
#include "command/memory_demand.h"
#include "command/prepare.h"
#include "command/probe_cells.h"
#include "command/probe_text.h"
#include "config/quantities.h"
#include "config/resolved.h"
#include "core/files.h"
#include "output/log.h"
#include "output/table.h"

namespace gradflow {
namespace {

struct Options {
  std::string config;
  std::vector<std::string> overrides;
  ProbeAxes axes;
  std::int64_t seeds = 10;
  std::string out;
  bool overwrite = false;
  bool skip_invalid = false;
  bool json = false;
};

/// Files of a probe's folder; `--overwrite` replaces these and nothing else.
constexpr const char* probe_files[] = {"probe.csv", "means.csv", "probe.json", "config.json"};

/// What all stacks of one seed are measured with.
struct SeedData {
  std::vector<Batch> batches;  ///< of the first step: the numbers are those that a run's first row would have
  Batch evaluation;            ///< for quantities on demand
};

std::vector<ProbeValue> values_of_seed(const Config& config, const SeedData& data, at::Device device) {
  std::vector<ProbeValue> values;
  for (const ProbedNumber& number : probe_stack(config, data.batches, data.evaluation, device))
    values.push_back(
        {config.seed, number.layer, number.sublayer, std::string(number.quantity), number.value, number.predicted});
  return values;
}

Cell layer_cell(const std::optional<std::int64_t>& layer) { return layer ? Cell{*layer} : Cell{}; }
Cell word_cell(const std::string& word) { return word.empty() ? Cell{} : Cell{word}; }
Cell low_cell(const std::optional<Band>& band) { return band ? Cell{band->low} : Cell{}; }
Cell high_cell(const std::optional<Band>& band) { return band ? Cell{band->high} : Cell{}; }

/// A folder for the files, created where there is none. Throws Error where a probe stands already.
std::string open_folder(const Options& options, const Config& config) {
  const std::string folder = options.out.empty() ? "results/" + config.name + "/probe" : options.out;
  if (std::filesystem::exists(folder + "/manifest.json"))
    throw Error(folder + ": holds a run; choose another folder with --out DIR");
  // Written last: what a probe that was stopped has left is no probe.
  if (std::filesystem::exists(folder + "/probe.json") && !options.overwrite)
    throw Error(folder +
                ": holds a probe already; choose another folder with --out DIR, or replace it with --overwrite");
  create_folders(folder);
  for (const char* file : probe_files) remove_file(folder + "/" + file);
  return folder;
}

class Files {
 public:
  explicit Files(const std::string& folder)
      : probe_(folder + "/probe.csv", probe_columns()), means_(folder + "/means.csv", probe_means_columns()) {}

  void write(const ProbeCell& cell, std::int64_t seed) {
    for (const ProbeValue& value : cell.values) {
      if (value.seed != seed) continue;
      const Cell row[] = {cell.kind.placement, cell.kind.norm, cell.kind.residual,        cell.kind.initialization,
                          cell.depth,          value.seed,     layer_cell(value.layer),   word_cell(value.sublayer),
                          value.quantity,      value.value,    low_cell(value.predicted), high_cell(value.predicted)};
      probe_.write(row);
    }
    probe_.flush();
  }

  void write_means(const ProbeCell& cell) {
    for (const ProbeMean& mean : probe_means(cell)) {
      const auto& interval = mean.over_seeds.interval;
      const Cell row[] = {cell.kind.placement,
                          cell.kind.norm,
                          cell.kind.residual,
                          cell.kind.initialization,
                          cell.depth,
                          layer_cell(mean.layer),
                          word_cell(mean.sublayer),
                          mean.quantity,
                          mean.seeds,
                          cell_of(mean.over_seeds.mean),
                          interval ? Cell{interval->low} : Cell{},
                          interval ? Cell{interval->high} : Cell{},
                          low_cell(mean.predicted),
                          high_cell(mean.predicted)};
      means_.write(row);
    }
    means_.flush();
  }

 private:
  static Cell cell_of(const std::optional<double>& value) { return gradflow::cell(value); }

  CsvFile probe_, means_;
};

std::vector<SeedData> data_of_seeds(Config config, std::int64_t seeds, at::Device device) {
  const bool on_demand = !on_demand_among(quantities_asked_for(config.record.quantities)).empty();
  std::vector<SeedData> all;
  for (std::int64_t s = 0; s < seeds; ++s, ++config.seed) {
    const auto source = make_source(config);
    SeedData& data = all.emplace_back();
    for (std::int64_t micro = 0; micro < config.train.accumulation; ++micro)
      data.batches.push_back(on_device(source->training_batch(1, micro), device));
    if (on_demand) data.evaluation = source->validation_batch(0);
  }
  return all;
}

Exit run(const Options& options) {
  Log log(std::cerr);
  std::vector<std::string> refused;
  std::vector<Config> cells = probe_cells(options.config, options.overrides, options.axes, refused);
  if (!refused.empty() && !options.skip_invalid) {
    refused.push_back("--skip-invalid leaves such combinations out");
    throw Error(std::move(refused));
  }
  for (const std::string& line : refused) log.note("left out: " + line);
  if (cells.empty()) throw Error("no combination is left; name others");
  // The file itself may hold what no cell has: the data and the device are those of the first cell.
  const std::vector<std::string> first = {"model.placement=" + std::string(name_of(cells[0].model.placement)),
                                          "model.norm=" + std::string(name_of(cells[0].model.norm)),
                                          "model.residual=" + std::string(name_of(cells[0].model.residual)),
                                          "model.initialization=" + std::string(name_of(cells[0].model.initialization)),
                                          "model.depth=" + std::to_string(cells[0].model.depth)};
  std::vector<std::string> overrides = options.overrides;
  overrides.insert(overrides.end(), first.begin(), first.end());
  const Prepared prepared = prepare(options.config, overrides);
  for (Config& config : cells) {
    config.data.vocabulary = prepared.config.data.vocabulary;
    if (const auto refusal = memory_refusal(config, prepared.device, /*can_be_forced=*/false)) throw Error(*refusal);
  }
  set_up_libtorch(prepared.config.compute);

  const std::string folder = open_folder(options, prepared.config);
  nlohmann::ordered_json base = to_json(prepared.config);
  write_file_atomically(folder + "/config.json", base.dump(2) + "\n");
  Files files(folder);
  Config data_config = prepared.config;
  data_config.record.quantities = cells[0].record.quantities;
  const std::vector<SeedData> seeds = data_of_seeds(data_config, options.seeds, prepared.device);
  std::vector<ProbeCell> results;
  for (Config& config : cells) {
    ProbeCell& cell = results.emplace_back(
        ProbeCell{{std::string(name_of(config.model.placement)), std::string(name_of(config.model.norm)),
                   std::string(name_of(config.model.residual)), std::string(name_of(config.model.initialization))},
                  config.model.depth,
                  {}});
    for (const SeedData& of_seed : seeds) {
      const std::vector<ProbeValue> values = values_of_seed(config, of_seed, prepared.device);
      cell.values.insert(cell.values.end(), values.begin(), values.end());
      files.write(cell, config.seed);
      ++config.seed;
    }
    files.write_means(cell);
  }
  const nlohmann::ordered_json json = probe_json(results);
  write_file_atomically(folder + "/probe.json", json.dump(2) + "\n");
  if (options.json)
    fmt::print("{}\n", json.dump(2));
  else
    fmt::print("{}\nfiles in {}\n", probe_text(results), folder);
  return Exit::done;
}

}  // namespace

void add_probe(CLI::App& program, Action& action) {
  CLI::App* command =
      program.add_subcommand("probe", "measures stacks at initialization over depth, placement and seeds, no training");
  auto options = std::make_shared<Options>();
  command->add_option("CONFIG", options->config, "configuration file (JSON)")->required()->type_name("");
  add_set_option(*command, options->overrides);
  const auto axis = [&](const char* name, std::vector<std::string>& values, const char* meaning) {
    command->add_option(name, values, meaning)->delimiter(',')->type_name("A,B,…");
  };
  command->add_option("--depths", options->axes.depths, "numbers of blocks, 2,4,8; default: the configuration's")
      ->delimiter(',')
      ->type_name("N,M,…");
  axis("--placements", options->axes.placements, "placements of the norm; default: the configuration's");
  axis("--norms", options->axes.norms, "norms; default: the configuration's");
  axis("--residuals", options->axes.residuals, "residual forms; default: the configuration's");
  axis("--initializations", options->axes.initializations, "initializations; default: the configuration's");
  axis("--quantities", options->axes.quantities,
       "what is measured, as record.quantities;\ndefault: the configuration's, which is standard");
  command->add_option("--seeds", options->seeds, "number of seeds, from the configuration's on; default 10")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1000000}))
      ->type_name("N");
  command->add_option("--out", options->out, "folder for the files; default results/NAME/probe")->type_name("DIR");
  command->add_flag("--overwrite", options->overwrite, "replaces a probe that stands in the folder");
  command->add_flag("--skip-invalid", options->skip_invalid,
                    "leaves out combinations that cannot be built, and lists them");
  command->add_flag("--json", options->json, "profiles and exponents as JSON on standard output");
  command->footer(
      "Builds every combination for every seed, passes the first step's batch forward and backward, and writes\n"
      "probe.csv (every number, with the closed-form prediction where theory has one), means.csv (over seeds),\n"
      "probe.json (fits). Intervals are Student's, 95 %, over seeds. \"predicted\" counts the sub-layers whose mean\n"
      "over seeds agrees with the prediction.");
  command->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace gradflow
