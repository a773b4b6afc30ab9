#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <nlohmann/json.hpp>

#include "command/cells.h"
#include "command/command.h"
#include "core/process.h"
#include "output/log.h"

namespace gradflow {
namespace {

struct Options {
  std::string grid;
  std::vector<std::string> overrides;
  std::string out;
  bool skip_invalid = false;
};

/// A word as a POSIX shell reads it.
std::string for_shell(const std::string& word) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

/// What this program was called by, which finds it again in the current folder.
std::string own_name() {
  const std::vector<std::string> words = command_line();
  return words.empty() || words.front().empty() ? "gradflow" : words.front();
}

/// The command that makes the cell's run: the base with everything that comes on top of it.
std::string command_of(const Grid& grid, const GridCells& cells, const GridCell& cell) {
  std::vector<std::string> words = {own_name(), "run",
                                    grid.base_file().empty() ? json_text(grid.base()) : grid.base_file()};
  const auto set = [&](std::string_view key, const std::string& text) {
    words.insert(words.end(), {"--set", fmt::format("{}={}", key, text)});
  };
  for (const Setting& setting : grid.settings(cell.number)) set(setting.key, option_text(setting.value));
  for (const std::string& override : grid.overrides()) words.insert(words.end(), {"--set", override});
  const Config config = grid.config(cell.number);
  // Those that stand in the grid file are relative to that, but would be taken as relative to the current folder.
  if (!config.data.files.empty()) set("data.files", nlohmann::json(config.data.files).dump());
  set("name", cells.name);
  words.insert(words.end(), {"--out", cell.folder, "--resume"});
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + for_shell(word);
  return line;
}

Exit run(const Options& options) {
  const Grid grid(options.grid, options.overrides);
  const GridCells cells = checked_cells(grid, {.out = options.out, .skip_invalid = options.skip_invalid});
  Log log(std::cerr);
  for (const std::string& remark : cells.remarks) log.warning(remark);
  for (const GridCell& cell : cells.cells) fmt::print("{}\n", command_of(grid, cells, cell));
  return Exit::done;
}

}  // namespace

void add_expand(CLI::App& program, Action& action) {
  CLI::App* command = program.add_subcommand("expand", "prints the commands of a grid, one run a line");
  auto options = std::make_shared<Options>();
  command->add_option("GRID", options->grid, "grid file (JSON)")->required()->type_name("");
  add_set_option(*command, options->overrides);
  command->add_option("--out", options->out, "as for sweep: folder of the run folders; without it results/NAME")
      ->type_name("DIR")
      ->check([](const std::string& folder) { return folder.empty() ? "needs the name of a folder" : ""; });
  command->add_flag("--skip-invalid", options->skip_invalid,
                    "leaves out cells that cannot be built instead of refusing the grid");
  command->footer(
      "Each line stands for itself and can be given to sh, xargs, GNU parallel or a batch system, in the current\n"
      "folder. It calls this program as it was called, makes the run folder that `sweep` would make, and does\n"
      "nothing where the run is finished.");
  command->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace gradflow
