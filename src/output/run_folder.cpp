#include "output/run_folder.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "core/files.h"

namespace gradflow {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr auto files = std::to_array<RunFile>({
    // First, so that a removal that is cut short leaves no run that looks finished.
    {"manifest.json", "versions, machine, threads, device, command line, times, status and its reason"},
    {"config.json", "the resolved configuration, every default written; `gradflow run` takes it"},
    {"steps.csv", "one row a recorded step"},
    {"layers.csv", "one row for each recorded step × layer × sub-layer"},
    {"tensors.csv", "with `record.tensors`: one row for each recorded step × parameter tensor"},
    {"quantities.csv", "quantities measured on demand"},
    {"spikes.csv", "one row a spike episode, with the layer where it began"},
    {"timing.csv", "wall-clock figures"},
    {"summary.json", "final and best loss, verdict, spikes, depth profile fits, overhead"},
    {"run.log", "what the terminal said"},
    {"checkpoint", "the newest good states (safetensors): weights, moments, and all that resuming needs"},
    {"lock", "host and process that works in the folder, or did so last"},
});

constexpr std::string_view lock_name = "lock";

/// The values of all keys by their full path; lists are values.
void collect(const json& group, const std::string& prefix, std::map<std::string, json>& values) {
  for (const auto& [key, value] : group.items())
    if (value.is_object())
      collect(value, prefix + key + '.', values);
    else
      values[prefix + key] = value;
}

/// What makes a run this one. Labels, checkpoint settings and numbers that follow from the rest do not; the content of
/// the data files does.
std::map<std::string, json> compared_part(json config) {
  const json hash =
      config.contains("/derived/data_files_hash"_json_pointer) ? config["derived"]["data_files_hash"] : json();
  for (const char* key : {"name", "checkpoint", "derived"}) config.erase(key);
  std::map<std::string, json> values;
  collect(config, "", values);
  if (!hash.is_null()) values["data.files (content)"] = hash;
  return values;
}

/// The keys in which the configurations of two runs differ; none when the runs are the same.
std::vector<ConfigChange> differences(const json& there, const json& here) {
  std::map<std::string, json> a = compared_part(there), b = compared_part(here);
  std::set<std::string> keys;
  for (const auto& [key, value] : a) keys.insert(key);
  for (const auto& [key, value] : b) keys.insert(key);
  const auto text = [](const std::map<std::string, json>& values, const std::string& key) {
    const auto found = values.find(key);
    return found == values.end() ? "absent" : found->second.dump(-1, ' ', false, json::error_handler_t::replace);
  };
  std::vector<ConfigChange> changes;
  for (const std::string& key : keys)
    if (!a.contains(key) || !b.contains(key) || a[key] != b[key]) changes.push_back({key, text(a, key), text(b, key)});
  return changes;
}

/// Whether a run may be taken up again with this change.
bool resumable(const ConfigChange& change, const json& here) {
  if (change.key == "compute.threads") return true;
  // Another number of steps bends every other schedule, also in the steps that are done.
  const auto constant = "/train/decay"_json_pointer, steps = "/train/steps"_json_pointer;
  return change.key == "train.steps" && here.contains(constant) && here[constant] == "constant" &&
         here.contains(steps) && here[steps].is_number() &&
         here[steps] > json::parse(change.there, nullptr, /*allow_exceptions=*/false);
}

/// "model.depth 12 → 6, train.batch 8 → 4"
std::string in_words(const std::vector<ConfigChange>& changes) {
  std::string text;
  for (const ConfigChange& change : changes)
    text += (text.empty() ? "" : ", ") + change.key + ' ' + change.there + " → " + change.here;
  return text;
}

bool exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

/// Whether the folder is, or can become, the folder of a run; throws Error otherwise. Nothing is touched.
void check_folder(const std::string& path) {
  std::error_code failure;
  const fs::file_status status = fs::status(path, failure);
  if (!fs::exists(status)) return;
  if (!fs::is_directory(status)) throw Error(path + ": is a file, not a folder; choose another folder with --out");
  const bool empty = fs::is_empty(path, failure);
  if (failure) throw file_error(path, "cannot be read", failure.value());
  if (!empty && !exists(path + "/manifest.json") && !exists(path + '/' + std::string(lock_name)))
    throw Error(path + ": holds other files and no run; choose a new or an empty folder with --out");
}

/// Removes a file of a run, or the checkpoints in their folder and then that, if nothing else lies there.
void remove_of_run(const std::string& path) {
  std::error_code failure;
  if (!fs::is_directory(path, failure)) {
    remove_file(path);
    remove_file(path + ".tmp");
    return;
  }
  for (const auto& entry : fs::directory_iterator(path, failure)) {
    const std::string name = entry.path().filename().string();
    if (name.find(".safetensors") != std::string::npos) remove_file(entry.path().string());
  }
  fs::remove(path, failure);
}

/// The configuration of the run that is there. Absent when it cannot be read.
std::optional<json> config_there(const std::string& path) {
  std::string text;
  try {
    text = read_file(path);
  } catch (const Error&) {
    return std::nullopt;
  }
  json config = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!config.is_object()) return std::nullopt;
  return config;
}

/// Creates the folder and those above it; at the end those of them that are still empty go again.
class NewFolders {
 public:
  explicit NewFolders(const std::string& path) {
    fs::path part(path);
    while (!part.empty() && !exists(part.string())) {
      created_.push_back(part);
      if (!part.has_parent_path() || part.parent_path() == part) break;
      part = part.parent_path();
    }
    create_folders(path);
  }
  ~NewFolders() {
    std::error_code ignored;
    for (const fs::path& folder : created_) fs::remove(folder, ignored);
  }
  NewFolders(const NewFolders&) = delete;
  NewFolders& operator=(const NewFolders&) = delete;

  bool any() const { return !created_.empty(); }

 private:
  std::vector<fs::path> created_;  // innermost first
};

}  // namespace

std::span<const RunFile> run_files() { return files; }

std::string default_run_folder(std::string_view name, std::string_view id) {
  return "results/" + std::string(name) + '/' + std::string(id);
}

std::optional<RunStatus> status_of_folder(const std::string& path) {
  const auto in_manifest = [&] { return status_in_manifest(path + "/manifest.json"); };
  const auto status = in_manifest();
  if (status != RunStatus::running || is_locked(path + '/' + std::string(lock_name))) return status;
  // It may have ended between the two looks.
  const auto again = in_manifest();
  return again == RunStatus::running ? RunStatus::killed : again;
}

std::string damaged_result(const std::string& path) {
  const auto file = [&](const char* name) { return path + '/' + name; };
  try {
    if (!json::parse(read_file(file("summary.json")), nullptr, /*allow_exceptions=*/false).is_object())
      return "summary.json";
  } catch (const Error&) {
    return "summary.json";
  }
  constexpr std::size_t longest_header = 8192;
  for (const char* table : {"steps.csv", "layers.csv", "spikes.csv", "timing.csv"}) {
    try {
      if (read_beginning(file(table), longest_header).find('\n') == std::string::npos) return table;
    } catch (const Error&) {
      return table;
    }
  }
  return {};
}

RunFolder::RunFolder(std::string path, const nlohmann::ordered_json& config)
    : path_(std::move(path)),
      config_text_(config.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n') {}

void RunFolder::update_config() const {
  if (const std::string path = file("config.json"); read_file(path) != config_text_)
    write_file_atomically(path, config_text_);
}

RunFolder RunFolder::open(const RunFolderOptions& options, const nlohmann::ordered_json& config) {
  if (options.path.empty()) throw std::logic_error("RunFolder::open: no path");
  RunFolder folder(without_slash_at_end(options.path), config);
  const std::string& path = folder.path_;
  check_folder(path);

  // What the run that is there is to this one, while nobody else changes it or after it has ended.
  const json here(config);
  const auto compare = [&] {
    const auto there = config_there(folder.file("config.json"));
    const std::string another = path + ": holds a run of another configuration: ";
    constexpr std::string_view way_out =
        "; choose another folder with --out or replace the run (remove it, or run --overwrite)";
    if (!there) throw Error(another + "its config.json cannot be read" + std::string(way_out));
    folder.changes_ = differences(*there, here);
    if (folder.changes_.empty()) return;
    const bool may_go_on = std::all_of(folder.changes_.begin(), folder.changes_.end(),
                                       [&](const ConfigChange& change) { return resumable(change, here); });
    if (options.resume && may_go_on) return;
    throw Error(another + in_words(folder.changes_) +
                (may_go_on ? "; go on with --resume"
                 : options.resume
                     ? "; --resume may change only a larger train.steps with constant decay, checkpoint.* and "
                       "compute.threads"
                     : "") +
                std::string(way_out));
  };
  // Whether the run has been done, is whole, and is not to be made longer.
  std::string damaged;
  const auto is_done = [&] {
    if (options.overwrite) return false;
    const auto status = status_in_manifest(folder.file("manifest.json"));
    if (status != RunStatus::finished && status != RunStatus::diverged) return false;
    compare();
    const bool longer = std::any_of(folder.changes_.begin(), folder.changes_.end(),
                                    [](const ConfigChange& change) { return change.key == "train.steps"; });
    if (longer && status == RunStatus::finished) return false;
    if (damaged = damaged_result(path); !damaged.empty()) return false;
    folder.finished_ = status;
    return true;
  };

  if (is_done()) return folder;
  NewFolders created(path);
  folder.lock_.emplace(folder.file(lock_name));
  if (is_done()) {  // by the process that has just left the lock
    folder.lock_.reset();
    return folder;
  }
  const bool run_there = exists(folder.file("config.json")) || exists(folder.file("manifest.json"));
  if (run_there && !options.overwrite) {
    compare();
    if (!options.resume && !damaged.empty())
      throw Error(path + ": holds a finished run whose " + damaged +
                  " is missing or damaged; make it whole with --resume or start again with --overwrite");
    if (!options.resume) {
      const auto status = status_in_manifest(folder.file("manifest.json"));
      // The lock is ours: whoever said so is gone.
      const std::string word(!status                        ? "begun"
                             : status == RunStatus::running ? name_of(RunStatus::killed)
                                                            : name_of(*status));
      throw Error(path + ": holds an unfinished run (" + word +
                  "); go on with --resume or start again with --overwrite");
    }
    folder.unfinished_ = true;
    return folder;
  }

  try {
    for (const RunFile& file : files)
      if (file.name != lock_name) remove_of_run(folder.file(file.name));
    write_file_atomically(folder.file("config.json"), folder.config_text_);
  } catch (const Error&) {
    // Nothing of a run has begun; a configuration whose folder could not be synced would look like somebody else's
    // file. Where it cannot be removed either, the lock stays and says that this is the folder of a run.
    if (created.any()) {
      std::error_code ignored;
      for (const char* name : {"config.json", "config.json.tmp"}) fs::remove(folder.file(name), ignored);
      const auto left = std::distance(fs::directory_iterator(path, ignored), fs::directory_iterator());
      if (left <= 1) fs::remove(folder.file(lock_name), ignored);
    }
    throw;
  }
  return folder;
}

}  // namespace gradflow
