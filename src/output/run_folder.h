#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/lock.h"
#include "output/manifest.h"

namespace gradflow {

/// A file of a run folder and what it holds (for the README).
struct RunFile {
  std::string_view name;
  std::string_view content;
};

/// Every file that a run writes into its folder, and the folder of its checkpoints. `--overwrite` removes these and
/// nothing else.
std::span<const RunFile> run_files();

/// Where a run goes unless `--out` says otherwise: results/NAME/ID, relative to the current folder.
std::string default_run_folder(std::string_view name, std::string_view id);

/// How the run in that folder stands: what its manifest says, but `killed` where that is `running` and no process holds
/// the folder's lock. Absent without a manifest.
std::optional<RunStatus> status_of_folder(const std::string& path);

/// The file of a finished run's results that is missing or cannot be read, "summary.json"; empty when all are there.
/// Their rows are not looked at.
std::string damaged_result(const std::string& path);

/// What another version of the program wrote into a folder, where this one has changed nothing.
struct OfOtherVersion : Error {
  using Error::Error;
};

struct RunFolderOptions {
  std::string path;        ///< of the folder; it may exist and be empty
  bool overwrite = false;  ///< replace the run that is there
  bool resume = false;     ///< go on with an unfinished run that is there
};

/// A key that differs between the run that is there and the one that is asked for. Values as JSON; "absent" without
/// one.
struct ConfigChange {
  std::string key;
  std::string there;
  std::string here;
};

/// The folder that one run writes, locked against every other process as long as this object lives.
class RunFolder {
 public:
  /// Creates the folder where there is none, takes its lock, decides what to do with a run that is there, and writes
  /// `config` (the resolved configuration) to config.json. Two configurations are the same when they differ in nothing
  /// but `name`, `checkpoint` and `derived`. What is resumed may also differ in compute.threads and, with a constant
  /// learning rate, have more steps: a finished run then counts as unfinished.
  ///
  /// | there is | without options | overwrite | resume |
  /// | --- | --- | --- | --- |
  /// | nothing | new run | new run | new run |
  /// | other files, no run | Error | Error | Error |
  /// | a run that another process works on | Error | Error | Error |
  /// | a run of another configuration | Error | new run | Error |
  /// | a finished or diverged run | `finished()` | new run | `finished()` |
  /// | one of which a `damaged_result` is left | Error | new run | `unfinished()` |
  /// | an unfinished run | Error | new run | `unfinished()` |
  ///
  /// A finished run's folder is left as it is, unlocked: it may lie where nobody may write. Errors name the folder and
  /// the way on; one that meets a folder just created removes it again.
  static RunFolder open(const RunFolderOptions& options, const nlohmann::ordered_json& config);

  /// `finished` or `diverged` when this run has already been done; nothing may be written then.
  std::optional<RunStatus> finished() const { return finished_; }
  /// Whether the folder holds the beginning of this run, to be resumed.
  bool unfinished() const { return unfinished_; }
  /// In what the run that is resumed differs from the one that was begun.
  const std::vector<ConfigChange>& changes() const { return changes_; }
  /// Writes config.json again for a run that is resumed with changes. Before, its manifest must say that it is running:
  /// a finished run with the configuration of a longer one would pass for that.
  void update_config() const;

  const std::string& path() const { return path_; }
  /// The path of a file in the folder.
  std::string file(std::string_view name) const { return path_ + '/' + std::string(name); }

 private:
  RunFolder(std::string path, const nlohmann::ordered_json& config);

  std::string path_;
  std::optional<FileLock> lock_;
  std::optional<RunStatus> finished_;
  bool unfinished_ = false;
  std::string config_text_;
  std::vector<ConfigChange> changes_;
};

}  // namespace gradflow
