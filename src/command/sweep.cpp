#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "analysis/comparison_text.h"
#include "command/cells.h"
#include "command/command.h"
#include "command/experiment.h"
#include "command/prepare.h"
#include "command/sweep_run.h"
#include "core/files.h"
#include "core/interrupt.h"
#include "core/lock.h"
#include "core/numbers.h"
#include "output/terminal.h"
#include "output/text_table.h"

namespace gradflow {
namespace {

struct Options {
  std::string grid;
  std::vector<std::string> overrides;
  std::string out;
  std::optional<std::int64_t> jobs;
  std::optional<std::int64_t> index;
  bool list = false;
  bool count = false;
  bool fail_fast = false;
  bool strict = false;
  bool skip_invalid = false;
  bool force = false;
  bool quiet = false;
};

/// The axes' keys as headings: the last component where that is clear.
std::vector<std::string> headings(const Grid& grid) {
  const auto keys = grid.keys();
  std::vector<std::string> out;
  for (const std::string_view key : keys) {
    const auto last = [](std::string_view whole) { return whole.substr(whole.rfind('.') + 1); };
    const auto same = std::count_if(keys.begin(), keys.end(), [&](auto other) { return last(other) == last(key); });
    out.emplace_back(same == 1 ? last(key) : key);
  }
  return out;
}

/// A row a run: what the axes give it, and how it stands.
std::string table_text(const Grid& grid, const GridCells& cells, const std::vector<RunRow>& rows) {
  std::vector<std::string> columns = {"index"};
  for (std::string& heading : headings(grid)) columns.push_back(std::move(heading));
  for (const char* heading : {"status", "verdict", "final loss"}) columns.emplace_back(heading);
  TextTable table(std::move(columns));
  for (const RunRow& row : rows) {
    std::vector<std::string> cells_of_row = {std::to_string(row.index)};
    for (const Setting& setting : grid.settings(cells.cells[static_cast<std::size_t>(row.index)].number))
      cells_of_row.push_back(option_text(setting.value));
    cells_of_row.push_back(row.status);
    cells_of_row.push_back(row.verdict);
    cells_of_row.push_back(row.final_loss ? significant(*row.final_loss, 4) : "");
    table.add(std::move(cells_of_row));
  }
  return table.text();
}

/// The comparison of the runs that are done, and those that are not.
void print_end(const Grid& grid, const GridCells& cells, const std::vector<RunRow>& rows) {
  std::vector<std::string> done;
  std::vector<RunRow> missing;
  for (const RunRow& row : rows) {
    if (row.done())
      done.push_back(row.path);
    else
      missing.push_back(row);
  }
  if (!done.empty()) fmt::print("{}\n", comparison_of_folders(done, table_columns()));
  if (!missing.empty()) fmt::print("{}\n", table_text(grid, cells, missing));
  fmt::print("runs in {}, a row each in {}/runs.csv\n", cells.folder, cells.folder);
}

Exit run_one(const Options& options, const Grid& grid, const GridCells& cells, RunsTable& table) {
  const std::int64_t index = *options.index;
  const auto count = static_cast<std::int64_t>(cells.cells.size());
  if (index < 0 || index >= count)
    throw Error(fmt::format("--index {}: {} has {} {}; write {}", index, options.grid, count,
                            count == 1 ? "run" : "runs", count == 1 ? "0" : fmt::format("0 to {}", count - 1)),
                Exit::usage);
  const GridCell& cell = cells.cells[static_cast<std::size_t>(index)];
  catch_interrupts();
  create_folders(cells.folder);
  const auto note = [&](std::optional<int> failure) {
    RunRow row = run_row(index, cell.id, cell.folder);
    if (failure) row.status = "failed", row.exit_code = failure;
    table.set(row);
    table.write();
  };
  try {
    const Prepared prepared = prepare([&](const FurtherCheck& further) { return grid.config(cell.number, further); });
    const ExperimentResult result = run_experiment(
        prepared, {.out = cell.folder, .resume = true, .force = options.force, .quiet = options.quiet}, std::cerr);
    note(std::nullopt);
    if (!options.quiet) std::cout << result.table << std::flush;
    if (result.exit != Exit::diverged) return result.exit;
    return options.strict ? Exit::cell_failed : Exit::done;
  } catch (const LockHeld&) {
    throw;  // the process that has it in hand will say how it ends
  } catch (const Interrupted&) {
    note(std::nullopt);
    throw;
  } catch (const Error& error) {
    note(static_cast<int>(Exit::error));
    throw Error(error.lines(), Exit::cell_failed);
  } catch (const std::exception& error) {  // of LibTorch, whose messages go on with a stack trace
    note(static_cast<int>(Exit::error));
    const std::string_view what = error.what();
    throw Error(fmt::format("{}: {}", cell.folder, what.substr(0, what.find('\n'))), Exit::cell_failed);
  }
}

Exit run(const Options& options) {
  const Grid grid(options.grid, options.overrides);
  const GridCells cells = checked_cells(grid, {.out = options.out, .skip_invalid = options.skip_invalid});
  Log log(std::cerr, options.quiet);
  for (const std::string& remark : cells.remarks) log.warning(remark);
  if (options.count) {
    fmt::print("{}\n", cells.cells.size());
    return Exit::done;
  }
  RunsTable table = runs_table(cells);
  if (options.list) {
    table.read_folders();
    fmt::print("{}", table_text(grid, cells, table.rows()));
    return Exit::done;
  }
  if (options.index) return run_one(options, grid, cells, table);

  create_folders(cells.folder);
  catch_interrupts();
  const Exit exit = run_sweep(grid, cells,
                              {.jobs = options.jobs,
                               .fail_fast = options.fail_fast,
                               .strict = options.strict,
                               .force = options.force,
                               .quiet = options.quiet},
                              table, log);
  // After SIGHUP the terminal is gone.
  if (!options.quiet && interrupted() != SIGHUP) print_end(grid, cells, table.rows());
  return exit;
}

}  // namespace

void add_sweep(CLI::App& program, Action& action) {
  CLI::App* command = program.add_subcommand("sweep", "runs a grid of configurations on this machine");
  auto options = std::make_shared<Options>();
  command->add_option("GRID", options->grid, "grid file (JSON)")->required()->type_name("");
  add_set_option(*command, options->overrides);
  command
      ->add_option("--out", options->out,
                   "folder of the run folders and of runs.csv; without it results/NAME\nbelow the current folder")
      ->type_name("DIR")
      ->check([](const std::string& folder) { return folder.empty() ? "needs the name of a folder" : ""; });
  command
      ->add_option("--jobs", options->jobs,
                   "runs at a time, each in a process of its own; default: cores divided by\ncompute.threads, fewer "
                   "where the memory of the largest runs would not do")
      ->type_name("N")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{4096}));
  CLI::Option* index =
      command->add_option("--index", options->index, "only the run of this number, from 0: for job arrays")
          ->type_name("I")
          ->excludes("--jobs");
  CLI::Option* list = command->add_flag("--list", options->list, "prints the runs and how they stand; runs nothing");
  CLI::Option* count = command->add_flag("--count", options->count, "prints how many runs there are; runs nothing");
  index->excludes(list)->excludes(count);
  list->excludes(count);
  command->add_flag("--fail-fast", options->fail_fast, "ends with the first run that fails");
  command->add_flag("--strict", options->strict, "a run that diverges has failed");
  command->add_flag("--skip-invalid", options->skip_invalid,
                    "leaves out cells that cannot be built (they get no number)\ninstead of refusing the grid");
  command->add_flag("--force", options->force, "runs although the estimated memory exceeds what is free");
  command->add_flag("--quiet", options->quiet, "no progress, no table; errors and warnings only");
  command->footer(
      "Finished runs are not run again, unfinished ones are resumed. A run whose process dies is tried once more.\n"
      "compute.threads decides how many threads a run uses, whatever OMP_NUM_THREADS says.\n"
      "In a Slurm array: gradflow sweep GRID --index $SLURM_ARRAY_TASK_ID\n"
      "Exit codes: 0 every run is done, 4 some run failed (with --strict also: diverged), 75 interrupted.");
  command->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace gradflow
