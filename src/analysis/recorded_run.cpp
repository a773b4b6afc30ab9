#include "analysis/recorded_run.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "config/identity.h"
#include "config/load.h"
#include "config/text.h"
#include "core/build_info.h"
#include "core/error.h"
#include "core/files.h"
#include "output/run_folder.h"
#include "output/table.h"

namespace gradflow {
namespace {

using nlohmann::json;

constexpr std::string_view run_again = "remove the folder and run it again";
/// For the results of a run whose configuration is there (`damaged_result`).
constexpr std::string_view make_whole = "its sweep, or run --resume, makes it whole";

bool exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

json object_in(std::string_view text, std::string_view name, std::string_view remedy = run_again) {
  json value = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!value.is_object()) throw Error(fmt::format("{} is damaged: it is no JSON object; {}", name, remedy));
  return value;
}

std::string text_at(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

/// "0.1" of "0.1.7": versions that agree in it write the same files.
std::string_view format_of(std::string_view version) { return version.substr(0, version.rfind('.')); }

void check_version(const std::string& version) {
  const std::string_view here = build_info().version;
  if (format_of(version) != format_of(here))
    throw Error(fmt::format("was written by version {}, this is {}; use the version that wrote it, or {}",
                            version.empty() ? "unknown" : shown(version), here, run_again));
}

/// The header must be that of this version.
void check_table(const RecordedRun& run, std::string_view name, std::span<const Column> columns) {
  constexpr std::size_t longest_header = 8192;
  const std::string beginning = read_beginning(run.file(name), longest_header);
  const std::size_t end = beginning.find('\n');
  if (end == std::string::npos) throw Error(fmt::format("{} has no header; {}", name, make_whole));
  std::string_view header = std::string_view(beginning).substr(0, end);
  if (header.ends_with('\r')) header.remove_suffix(1);
  if (const std::string fault = header_fault(header, columns); !fault.empty())
    throw Error(fmt::format("{}: {}", name, shown(fault, 300)));
}

void check_tables(const RecordedRun& run) {
  const std::pair<std::string_view, std::span<const Column>> tables[] = {{"steps.csv", steps_columns()},
                                                                         {"layers.csv", layers_columns()},
                                                                         {"spikes.csv", spikes_columns()},
                                                                         {"timing.csv", timing_columns()}};
  for (const auto& [name, columns] : tables) {
    if (exists(run.file(name)))
      check_table(run, name, columns);
    else if (run.finished())
      throw Error(fmt::format("says that it is {}, but has no {}; {}", name_of(run.status), name, make_whole));
  }
}

RecordedRun read(const std::string& path) {
  RecordedRun run;
  run.path = path;
  for (const char* name : {"config.json", "manifest.json"})
    if (!exists(run.file(name)))
      throw Error(fmt::format("is half written, or no run folder: it has no {}; {}", name, run_again));

  run.manifest = object_in(read_file(run.file("manifest.json")), "manifest.json");
  check_version(text_at(run.manifest, "version"));
  const std::string word = text_at(run.manifest, "status");
  const std::optional<RunStatus> status = status_named(word);
  if (!status) throw Error(fmt::format("manifest.json is damaged: its status is {}; {}", in_quotes(word), run_again));
  run.status = status == RunStatus::running ? status_of_folder(path).value_or(*status) : *status;
  run.reason = text_at(run.manifest, "reason");

  const std::string text = read_file(run.file("config.json"));
  try {
    run.config = parse_recorded_config(text, "config.json");
  } catch (const Error& error) {
    throw Error(fmt::format("is damaged or of another version: {}", error.lines().front()));
  }
  json whole = object_in(text, "config.json");
  if (const auto derived = whole.find("derived"); derived != whole.end()) run.derived = std::move(*derived);

  if (exists(run.file("summary.json")))
    run.summary = object_in(read_file(run.file("summary.json")), "summary.json", make_whole);
  else if (run.finished())
    throw Error(fmt::format("says that it is {}, but has no summary.json; {}", word, make_whole));
  check_tables(run);
  return run;
}

}  // namespace

std::optional<Verdict> RecordedRun::verdict() const {
  return finished() ? verdict_named(text_at(summary, "verdict")) : std::nullopt;
}

std::optional<double> RecordedRun::number(std::string_view pointer) const {
  const json* value = &summary;
  while (!pointer.empty()) {
    pointer.remove_prefix(1);
    const std::string_view name = pointer.substr(0, pointer.find('/'));
    if (!value->is_object()) return std::nullopt;
    const auto found = value->find(std::string(name));
    if (found == value->end()) return std::nullopt;
    value = &*found;
    pointer.remove_prefix(name.size());
  }
  if (!value->is_number()) return std::nullopt;
  return value->get<double>();
}

std::string RecordedRun::files_hash() const {
  return derived.is_object() ? text_at(derived, "data_files_hash") : std::string();
}

std::string RecordedRun::id() const { return run_id(config, files_hash()); }

std::variant<RecordedRun, LeftOut> read_run(const std::string& path) {
  try {
    return read(path);
  } catch (const Error& error) {
    std::string reason = error.lines().front();
    // Errors of files name them in full; the folder is said already.
    if (reason.starts_with(path + '/')) reason.erase(0, path.size() + 1);
    return LeftOut{path, reason};
  }
}

}  // namespace gradflow
