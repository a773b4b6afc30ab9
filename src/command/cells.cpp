#include "command/cells.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "command/prepare.h"
#include "config/identity.h"
#include "core/child_process.h"
#include "core/files.h"
#include "model/description.h"
#include "model/layout.h"
#include "output/run_folder.h"

namespace gradflow {
namespace {

using Json = nlohmann::json;

/// What the checking process says of a cell.
Json examined(const Grid& grid, std::size_t number) {
  try {
    const Prepared prepared = prepare([&](const FurtherCheck& further) { return grid.config(number, further); });
    const Config& config = prepared.config;
    const std::string hash = data_files_hash(config);
    // Multiplications and additions with weights, three times each, and a share for every block that does not grow with
    // its size.
    const double tokens = static_cast<double>(config.train.batch) *
                          static_cast<double>(config.model.stack == StackKind::transformer ? config.data.context : 1);
    const double step = static_cast<double>(config.train.accumulation) *
                        (6 * tokens * static_cast<double>(make_layout(config).parameter_count()) +
                         5e6 * static_cast<double>(config.model.depth + 1));
    const MemoryDemand memory = memory_demand(prepared.config, prepared.device);
    return {{"name", config.name},
            {"id", run_id(config, hash)},
            {"hash", run_hash(config, hash)},
            {"cost", step * static_cast<double>(config.train.steps)},
            {"program", memory.program},
            {"memory", memory.own},
            {"memory_refusal", memory_refusal(prepared.config, prepared.device).value_or("")},
            {"threads", config.compute.threads},
            {"flush_denormals", config.compute.flush_denormals}};
  } catch (const Error& error) {
    return {{"faults", error.lines()}};
  }
}

std::vector<Json> examined_in_another_process(const Grid& grid) {
  ChildProcess child([&](Channel& channel) {
    at::set_num_threads(1);
    for (std::size_t number = 0; number < grid.size(); ++number) channel.send(examined(grid, number).dump());
  });
  std::vector<Json> results;
  while (const auto message = child.channel().receive()) results.push_back(Json::parse(*message));
  if (const ProcessEnd end = child.wait(); !end.good() || results.size() != grid.size())
    throw Error(fmt::format("{}: the check of cell {} ended with {}", grid.path(),
                            grid.label(std::min(results.size(), grid.size() - 1)), end.words()));
  return results;
}

/// "FAULT (cell A and 3 more)" for each fault, the first cell's first.
std::vector<std::string> fault_lines(const Grid& grid, const std::vector<Json>& results) {
  std::vector<std::string> faults;
  std::map<std::string, std::vector<std::size_t>> cells;
  for (std::size_t number = 0; number < results.size(); ++number) {
    if (!results[number].contains("faults")) continue;
    for (const std::string fault : results[number]["faults"]) {
      if (!cells.contains(fault)) faults.push_back(fault);
      cells[fault].push_back(number);
    }
  }
  for (std::string& fault : faults) {
    const auto& named = cells[fault];
    fault += fmt::format(" (cell {}{})", grid.label(named[0]),
                         named.size() > 1 ? fmt::format(" and {} more", named.size() - 1) : "");
  }
  return faults;
}

}  // namespace

GridCells checked_cells(const Grid& grid, const CellOptions& options) {
  const std::vector<Json> results = examined_in_another_process(grid);
  GridCells checked;
  checked.remarks.assign(grid.warnings().begin(), grid.warnings().end());
  if (auto faults = fault_lines(grid, results); !faults.empty()) {
    const bool none_left =
        std::all_of(results.begin(), results.end(), [](const Json& r) { return r.contains("faults"); });
    if (!options.skip_invalid || none_left) throw Error(std::move(faults));
    for (const std::string& fault : faults) checked.remarks.push_back("left out: " + fault);
  }

  std::map<std::uint64_t, std::size_t> first_with;
  std::vector<std::string> equal;
  for (std::size_t number = 0; number < results.size(); ++number) {
    const Json& result = results[number];
    if (result.contains("faults")) continue;
    checked.name = result["name"];
    const auto [first, is_new] = first_with.emplace(result["hash"], number);
    if (!is_new) {
      equal.push_back(fmt::format("{} equals {}", grid.label(number), grid.label(first->second)));
      continue;
    }
    checked.cells.push_back({.number = number,
                             .id = result["id"],
                             .folder = {},
                             .label = grid.label(number),
                             .cost = result["cost"],
                             .memory = {result["program"], result["memory"]},
                             .memory_refusal = result["memory_refusal"],
                             .threads = result["threads"],
                             .flush_denormals = result["flush_denormals"]});
  }
  if (!equal.empty())
    checked.remarks.push_back(
        fmt::format("{}: {} left out: {}{}", grid.path(),
                    equal.size() == 1 ? "one cell has the configuration of another and is"
                                      : fmt::format("{} cells have the configuration of another and are", equal.size()),
                    equal.front(), equal.size() > 1 ? fmt::format(" and {} more", equal.size() - 1) : ""));
  checked.folder = without_slash_at_end(options.out.empty() ? default_run_folder(checked.name, "") : options.out);
  for (GridCell& cell : checked.cells) cell.folder = checked.folder + '/' + cell.id;
  return checked;
}

}  // namespace gradflow
