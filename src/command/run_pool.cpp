#include "command/run_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "analysis/recorded_run.h"
#include "command/cells.h"
#include "command/sweep_run.h"
#include "config/fields.h"
#include "config/grid.h"
#include "config/identity.h"
#include "config/json_reader.h"
#include "config/resolved.h"
#include "core/error.h"
#include "core/files.h"
#include "model/description.h"

namespace gradflow {
namespace {

/// A grid whose one axis holds, for every configuration, the keys that differ between any of them.
Grid grid_of(std::span<const Config> configs, const std::string& pool) {
  std::vector<const Field*> differing;
  for (const auto& field : fields())
    if (field->key() != "name" && std::any_of(configs.begin(), configs.end(), [&](const Config& config) {
          return field->value(config) != field->value(configs.front());
        }))
      differing.push_back(field.get());
  Json base = to_json(configs.front());
  base["name"] = "claims";
  Json grid = {{"base", std::move(base)}};
  if (!differing.empty()) {
    Json entries = Json::array();
    for (const Config& config : configs) {
      Json entry = Json::object();
      for (const Field* field : differing) entry[std::string(field->key())] = field->value(config);
      entries.push_back(std::move(entry));
    }
    grid["together"] = Json::array({std::move(entries)});
  }
  Faults faults;
  return Grid(read_json(grid.dump(), pool, faults), pool);
}

/// Why a run is not done, by what its folder and the sweep say.
std::string failure_of(const RunRow& row) {
  const auto found = read_run(row.path);
  if (const LeftOut* left_out = std::get_if<LeftOut>(&found)) return left_out->reason;
  const std::string& reason = std::get<RecordedRun>(found).reason;
  return reason.empty() ? row.status : reason;
}

}  // namespace

std::vector<PooledRun> run_pool(std::span<const Config> configs, const std::string& pool, std::int64_t jobs, bool force,
                                Log& log) {
  if (configs.empty()) return {};
  const Grid grid = grid_of(configs, pool);
  GridCells cells = checked_cells(grid, {.out = pool});
  for (GridCell& cell : cells.cells) cell.label = cell.id;
  create_folders(cells.folder);
  RunsTable table = runs_table(cells);
  SweepOptions options{.force = force};
  if (jobs > 0) options.jobs = jobs;
  const Exit exit = run_sweep(grid, cells, options, table, log);
  if (exit == Exit::interrupted) throw Error("interrupted; the same command goes on where it ended", exit);

  std::map<std::string, PooledRun, std::less<>> by_id;
  for (const RunRow& row : table.rows()) by_id[row.id] = {row.path, row.done() ? "" : failure_of(row)};
  std::vector<PooledRun> results;
  for (const Config& config : configs) results.push_back(by_id.at(run_id(config, data_files_hash(config))));
  return results;
}

}  // namespace gradflow
