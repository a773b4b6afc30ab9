#include "output/run_folder.h"

#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "core/error.h"
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
    {"lock", "host and process that works in the folder, or did so last"},
});

constexpr std::string_view lock_name = "lock";

/// What does not make another run is left out: labels, checkpoint settings, and numbers that follow from the rest. The
/// content of the data files does make another one.
json compared_part(json config) {
  if (!config.is_object()) return config;
  const json hash =
      config.contains("/derived/data_files_hash"_json_pointer) ? config["derived"]["data_files_hash"] : json();
  for (const char* key : {"name", "checkpoint", "derived"}) config.erase(key);
  if (!hash.is_null()) config["data"]["content of the files"] = hash;
  return config.flatten();
}

std::string dotted(std::string_view pointer) {
  std::string key(pointer.substr(pointer.starts_with('/') ? 1 : 0));
  for (char& c : key)
    if (c == '/') c = '.';
  return key;
}

/// "model.depth is 12 there and 6 here, …" for the first differing keys; empty when the runs are the same.
std::string difference(const json& there, const json& here) {
  constexpr int named_at_most = 5;
  const json a = compared_part(there), b = compared_part(here);
  std::set<std::string> keys;
  for (const auto& item : a.items()) keys.insert(item.key());
  for (const auto& item : b.items()) keys.insert(item.key());
  std::string text;
  int count = 0;
  for (const std::string& key : keys) {
    const std::string old_value = a.contains(key) ? a[key].dump() : "absent";
    const std::string new_value = b.contains(key) ? b[key].dump() : "absent";
    if (a.contains(key) && b.contains(key) && a[key] == b[key]) continue;
    if (++count <= named_at_most)
      text += (text.empty() ? "" : ", ") + dotted(key) + " is " + old_value + " there and " + new_value + " here";
  }
  if (count > named_at_most) text += " and " + std::to_string(count - named_at_most) + " more";
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

std::string without_slash_at_end(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

}  // namespace

std::span<const RunFile> run_files() { return files; }

std::string default_run_folder(std::string_view name, std::string_view id) {
  return "results/" + std::string(name) + '/' + std::string(id);
}

RunFolder RunFolder::open(const RunFolderOptions& options, const nlohmann::ordered_json& config) {
  if (options.path.empty()) throw std::logic_error("RunFolder::open: no path");
  RunFolder folder(without_slash_at_end(options.path));
  const std::string& path = folder.path_;
  check_folder(path);

  const json here(config);
  const auto refuse_another_configuration = [&] {
    const auto there = config_there(folder.file("config.json"));
    const std::string what = there ? difference(*there, here) : "its config.json cannot be read";
    if (!what.empty())
      throw Error(path + ": holds a run of another configuration: " + what +
                  "; choose another folder with --out or replace the run with --overwrite");
  };

  if (!options.overwrite) {
    const auto status = status_in_manifest(folder.file("manifest.json"));
    if (status == RunStatus::finished || status == RunStatus::diverged) {
      refuse_another_configuration();
      folder.finished_ = status;
      return folder;
    }
  }

  NewFolders created(path);
  folder.lock_.emplace(folder.file(lock_name));
  const bool run_there = exists(folder.file("config.json")) || exists(folder.file("manifest.json"));
  if (run_there && !options.overwrite) {
    refuse_another_configuration();
    if (!options.resume) {
      const auto status = status_in_manifest(folder.file("manifest.json"));
      const std::string word(status ? name_of(*status) : "begun");
      throw Error(path + ": holds an unfinished run (" + word +
                  "); go on with --resume or start again with --overwrite");
    }
    folder.unfinished_ = true;
    return folder;
  }

  try {
    for (const RunFile& file : files) {
      if (file.name == lock_name) continue;
      remove_file(folder.file(file.name));
      remove_file(folder.file(file.name) + ".tmp");
    }
    write_file_atomically(folder.file("config.json"), config.dump(2) + '\n');
  } catch (const Error&) {
    if (created.any()) remove_file(folder.file(lock_name));
    throw;
  }
  return folder;
}

}  // namespace gradflow
