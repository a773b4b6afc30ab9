#include "analysis/find_runs.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "config/text.h"
#include "core/error.h"
#include "core/files.h"
#include "output/run_folder.h"

namespace gradflow {
namespace {

namespace fs = std::filesystem;

class Search {
 public:
  FoundRuns found;

  void visit(const std::string& path) {
    struct stat status {};
    // A link may lead nowhere, a folder may be removed meanwhile.
    if (::stat(path.c_str(), &status) != 0 || !visited_.emplace(status.st_dev, status.st_ino).second) return;

    bool holds_run = false, holds_probe = false, holds_manifest = false;
    std::vector<std::string> folders;
    std::error_code failure;
    for (fs::directory_iterator entry(path, failure), end; !failure && entry != end; entry.increment(failure)) {
      const std::string name = entry->path().filename().string();
      std::error_code ignored;
      if (entry->is_directory(ignored)) {
        if (!name.starts_with('.')) folders.push_back(name);
      } else {
        holds_run = holds_run || tells_of_a_run(name);
        holds_probe = holds_probe || name == "probe.csv";
        holds_manifest = holds_manifest || name == "manifest.json";
      }
    }
    if (failure) found.left_out.push_back({path, fmt::format("cannot be searched ({})", failure.message())});
    if (holds_probe && !holds_manifest)
      found.probes.push_back(path);
    else if (holds_run)
      take(path);
    std::sort(folders.begin(), folders.end());
    for (const std::string& folder : folders) visit((path == "/" ? "" : path) + '/' + folder);
  }

 private:
  /// A lock alone is nobody's result, and other programs have files of these names too.
  static bool tells_of_a_run(const std::string& name) {
    if (name == "lock" || name == "run.log") return false;
    const auto files = run_files();
    return std::any_of(files.begin(), files.end(), [&](const RunFile& file) { return file.name == name; });
  }

  void take(const std::string& path) {
    std::variant<RecordedRun, LeftOut> run = read_run(path);
    if (auto* recorded = std::get_if<RecordedRun>(&run))
      found.runs.push_back(std::move(*recorded));
    else
      found.left_out.push_back(std::move(std::get<LeftOut>(run)));
  }

  std::set<std::pair<dev_t, ino_t>> visited_;
};

}  // namespace

FoundRuns find_runs(std::span<const std::string> paths) {
  Search search;
  std::vector<std::string> missing;
  for (const std::string& given : paths) {
    const std::string path = without_slash_at_end(given);
    search.found.searched.push_back(path);
    std::error_code failure;
    const fs::file_status status = fs::status(path, failure);
    if (!fs::exists(status))
      missing.push_back(fmt::format("{}: does not exist; name run folders, or folders above them",
                                    path.empty() ? "\"\"" : shown_path(path)));
    else if (fs::is_directory(status))
      search.visit(path);
    else
      search.found.left_out.push_back({path, "is a file, not a folder; name run folders, or folders above them"});
  }
  if (!missing.empty()) throw Error(std::move(missing));
  return std::move(search.found);
}

std::string text_of(const LeftOut& left_out) {
  return fmt::format("{}: left out: {}", shown_path(left_out.path), left_out.reason);
}

void require_runs(const FoundRuns& found) {
  if (!found.runs.empty()) return;
  std::string searched;
  for (const std::string& path : found.searched) searched += (searched.empty() ? "" : ", ") + shown_path(path);
  const char* what = !found.probes.empty()    ? "no run folder is there, but a probe, which gradflow report shows"
                     : found.left_out.empty() ? "no run folder is there"
                                              : "no run folder that can be used is there";
  throw Error(fmt::format("{}: {}; name run folders, or folders above them", searched, what));
}

}  // namespace gradflow
