#pragma once

#include <span>
#include <string>
#include <vector>

#include "analysis/find_runs.h"
#include "analysis/study.h"

namespace CLI {
class App;
}

namespace gradflow {

/// The argument PATH… of the commands that read run folders.
void add_paths_argument(CLI::App& command, std::vector<std::string>& paths);

/// The runs in these folders and below as one study; says on standard error, a line each, what is left out, what was
/// found twice and what is not finished. Throws Error when there is no run.
struct FoundStudy {
  Study study;
  std::vector<LeftOut> left_out;  ///< also the runs found twice
};
FoundStudy study_in(std::span<const std::string> paths, std::string_view what_unfinished_runs_do);

/// One warning a line on standard error.
void warn_of(std::span<const LeftOut> left_out);

}  // namespace gradflow
