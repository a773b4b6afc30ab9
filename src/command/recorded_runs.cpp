#include "command/recorded_runs.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <utility>

#include "config/text.h"
#include "output/log.h"

namespace gradflow {

void add_paths_argument(CLI::App& command, std::vector<std::string>& paths) {
  command.add_option("PATH", paths, "run folders, or folders to search for them")->required()->type_name("");
}

void warn_of(std::span<const LeftOut> left_out) {
  Log log(std::cerr);
  for (const LeftOut& one : left_out) log.warning(text_of(one));
}

FoundStudy study_in(std::span<const std::string> paths, std::string_view what_unfinished_runs_do) {
  FoundRuns found = find_runs(paths);
  warn_of(found.left_out);
  require_runs(found);
  FoundStudy result{make_study(std::move(found.runs)), std::move(found.left_out)};
  warn_of(result.study.repeated);
  result.left_out.insert(result.left_out.end(), result.study.repeated.begin(), result.study.repeated.end());
  Log log(std::cerr);
  for (const std::size_t place : result.study.unfinished()) {
    const RecordedRun& run = result.study.runs[place];
    log.warning(fmt::format("{}: {}{}; {}", shown_path(run.path), name_of(run.status),
                            run.reason.empty() ? "" : " (" + shown(run.reason, 200) + ")", what_unfinished_runs_do));
  }
  return result;
}

}  // namespace gradflow
