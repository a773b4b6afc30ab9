#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analysis/comparison.h"
#include "analysis/comparison_text.h"
#include "command/command.h"
#include "command/recorded_runs.h"
#include "output/paragraph.h"
#include "output/terminal.h"

namespace gradflow {
namespace {

struct Options {
  std::vector<std::string> paths;
  std::string sort;
  bool csv = false;
  bool json = false;
  bool markdown = false;
};

Exit run(const Options& options) {
  FoundStudy found = study_in(options.paths, "counted as unfinished, in no other number");
  Comparison comparison = compare(std::move(found.study));
  warn_of(comparison.damaged);
  if (!options.sort.empty()) sort_groups(comparison, options.sort);
  if (options.csv)
    fmt::print("{}", comparison_csv(comparison));
  else if (options.json)
    fmt::print("{}\n", comparison_json(comparison, found.left_out).dump(2, ' ', false, Json::error_handler_t::replace));
  else if (options.markdown)
    fmt::print("{}", comparison_markdown(comparison));
  else
    fmt::print("{}", comparison_text(comparison, table_columns()));
  return Exit::done;
}

std::string column_list() {
  std::string names;
  for (const ComparisonColumn& column : comparison_columns())
    names += (names.empty() ? "" : ", ") + std::string(column.name);
  return names;
}

}  // namespace

void add_compare(CLI::App& program, Action& action) {
  CLI::App* command = program.add_subcommand("compare", "table over finished runs, with intervals over seeds");
  auto options = std::make_shared<Options>();
  add_paths_argument(*command, options->paths);
  command
      ->add_option("--sort", options->sort,
                   "orders the rows by a column, descending with :desc; without it by the keys that differ")
      ->type_name("COLUMN[:desc]");
  CLI::Option* csv = command->add_flag("--csv", options->csv, "all columns as CSV");
  CLI::Option* json = command->add_flag("--json", options->json, "all columns and the runs of each row as JSON");
  CLI::Option* markdown = command->add_flag("--markdown", options->markdown, "the table in Markdown");
  csv->excludes(json)->excludes(markdown);
  json->excludes(markdown);
  command->footer(
      "One row for the runs that differ only by their seed; a column for each key that differs. On a terminal a table\n"
      "that is too wide is set as several (COLUMNS=N sets the width). Columns of --csv and --json, for --sort too, "
      "beside\n"
      "the keys and verdict:\n" +
      paragraph("  ", column_list(), 110) +
      "Rates are natural logarithms a block, losses nats a token, intervals 95 % (Student, three seeds or more).");
  command->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace gradflow
