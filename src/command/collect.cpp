#include "analysis/collect.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "command/command.h"
#include "command/recorded_runs.h"
#include "config/text.h"
#include "core/files.h"
#include "output/paragraph.h"

namespace gradflow {
namespace {

struct Options {
  std::vector<std::string> paths;
  std::string table;
  std::string out;
};

Collected write(const Study& study, const Options& options) {
  if (options.out.empty())
    return collect(study, options.table,
                   [](std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); });
  WholeFile file(options.out);
  const Collected collected = collect(study, options.table, [&](std::string_view text) { file.append(text); });
  if (collected.runs > 0) file.finish();
  return collected;
}

Exit run(const Options& options) {
  const FoundStudy found = study_in(options.paths, "its rows so far are there");
  const Collected collected = write(found.study, options);
  warn_of(collected.left_out);
  if (collected.runs == 0)
    throw Error(fmt::format("--table {}: none of {} runs has it; see the warnings, or collect another table",
                            options.table, found.study.runs.size()));
  return Exit::done;
}

}  // namespace

void add_collect(CLI::App& program, Action& action) {
  CLI::App* command = program.add_subcommand("collect", "all runs' rows of one table as one CSV file");
  auto options = std::make_shared<Options>();
  add_paths_argument(*command, options->paths);
  std::vector<std::string> tables;
  for (const std::string_view table : collectable_tables()) tables.emplace_back(table);
  command->add_option("--table", options->table, "which one: " + fmt::format("{}", fmt::join(tables, ", ")))
      ->required()
      ->type_name("TABLE")
      ->check(CLI::IsMember(tables).description(""));
  command->add_option("--out", options->out, "file to write; without it standard output")->type_name("FILE");
  std::string columns;
  for (const RunColumn& column : run_columns()) columns += (columns.empty() ? "" : ", ") + std::string(column.name);
  command->footer(
      "Each row is preceded by `run`, the folder, and by one column for every key that differs, by its full path. The\n"
      "tables are the CSV files of a run folder, and runs, which has a row a run with the columns\n" +
      paragraph("  ", columns, 110) + "Runs that are not finished are in it with the rows that they have.");
  command->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace gradflow
