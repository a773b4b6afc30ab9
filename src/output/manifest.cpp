#include "output/manifest.h"

#include <array>
#include <ctime>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files.h"

namespace gradflow {
namespace {

constexpr std::array<std::string_view, 6> status_names = {"running",     "finished", "diverged",
                                                          "interrupted", "failed",   "killed"};

/// The manifest that is there, as JSON; null when there is none.
nlohmann::json read_manifest(const std::string& path) {
  std::string text;
  try {
    text = read_file(path);
  } catch (const Error&) {
    return nullptr;
  }
  nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  return json.is_object() ? json : nlohmann::json();
}

/// A text of a JSON object; empty when it has none of this name.
std::string text_in(const nlohmann::json& json, const char* key) {
  return json.is_object() && json.contains(key) && json[key].is_string() ? json[key].get<std::string>() : "";
}

/// The texts of a list in a JSON object; none when it has no such list.
std::vector<std::string> texts_in(const nlohmann::json& json, const char* key) {
  std::vector<std::string> texts;
  if (json.contains(key) && json[key].is_array())
    for (const nlohmann::json& one : json[key])
      if (one.is_string()) texts.push_back(one.get<std::string>());
  return texts;
}

}  // namespace

std::string_view name_of(RunStatus status) { return status_names[static_cast<std::size_t>(status)]; }

std::optional<RunStatus> status_named(std::string_view word) {
  for (std::size_t i = 0; i < status_names.size(); ++i)
    if (status_names[i] == word) return static_cast<RunStatus>(i);
  return std::nullopt;
}

std::string utc_text(std::chrono::system_clock::time_point time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(std::chrono::floor<std::chrono::seconds>(time));
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

void write_manifest(const std::string& path, const Manifest& manifest) {
  nlohmann::ordered_json json;
  json["status"] = name_of(manifest.status);
  json["reason"] = manifest.reason;
  json["started"] = manifest.started;
  json["ended"] = manifest.ended ? nlohmann::ordered_json(utc_text(*manifest.ended)) : nlohmann::ordered_json(nullptr);
  json["resumed"] = nlohmann::ordered_json::array();
  for (const Resumption& one : manifest.resumed) {
    auto& entry = json["resumed"].emplace_back(nlohmann::ordered_json{{"step", one.step}, {"at", one.at}});
    if (!one.changed.empty()) entry["changed"] = one.changed;
  }
  json["command_line"] = manifest.command_line;
  json["version"] = manifest.version;
  json["git_revision"] = manifest.git_revision;
  json["compiler"] = manifest.compiler;
  json["libtorch"] = manifest.libtorch;
  json["blas"] = manifest.blas;
  json["cpu"] = manifest.cpu;
  json["host"] = manifest.host;
  json["device"] = manifest.device;
  json["backend"] = manifest.backend;
  json["threads"] = manifest.threads;
  json["flush_denormals"] = manifest.flush_denormals;
  // A command line may hold bytes that are not UTF-8; they must not cost the run its manifest.
  const std::string text = json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
  try {
    write_file_atomically(path, text);
  } catch (const Error&) {
    // On a full disk what has happened can still be said within the room that the file already has.
    constexpr std::uint64_t block = 4096;
    const std::uint64_t room = (file_size(path).value_or(0) + block - 1) / block * block;
    if (text.size() > room) throw;
    write_file_in_place(path, text);
  }
}

void continue_history(const std::string& path, Manifest& manifest) {
  const nlohmann::json there = read_manifest(path);
  if (const std::string started = text_in(there, "started"); !started.empty()) manifest.started = started;
  if (!there.is_object() || !there.contains("resumed") || !there["resumed"].is_array()) return;
  for (const nlohmann::json& one : there["resumed"])
    if (one.is_object() && one.contains("step") && one["step"].is_number_integer())
      manifest.resumed.push_back({one["step"].get<std::int64_t>(), text_in(one, "at"), texts_in(one, "changed")});
}

std::vector<std::string> changes_of_surroundings(const std::string& path, const Manifest& manifest) {
  const std::pair<const char*, const std::string&> here[] = {
      {"version", manifest.version},   {"git_revision", manifest.git_revision},
      {"compiler", manifest.compiler}, {"libtorch", manifest.libtorch},
      {"blas", manifest.blas},         {"cpu", manifest.cpu},
      {"device", manifest.device},     {"backend", manifest.backend}};
  const nlohmann::json there = read_manifest(path);
  std::vector<std::string> changes;
  for (const auto& [key, value] : here)
    if (const std::string before = text_in(there, key); !before.empty() && before != value)
      changes.push_back(std::string(key) + ' ' + before + " → " + value);
  return changes;
}

void write_failure(const std::string& path, const std::string& reason) {
  if (!status_in_manifest(path)) return;
  auto json = nlohmann::ordered_json::parse(read_file(path));
  json["status"] = name_of(RunStatus::failed);
  json["reason"] = reason;
  json["ended"] = utc_text(std::chrono::system_clock::now());
  write_file_atomically(path, json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n');
}

std::optional<RunStatus> status_in_manifest(const std::string& path) {
  return status_named(text_in(read_manifest(path), "status"));
}

}  // namespace gradflow
