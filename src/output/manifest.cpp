#include "output/manifest.h"

#include <array>
#include <ctime>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files.h"

namespace gradflow {
namespace {

constexpr std::array<std::string_view, 5> status_names = {"running", "finished", "diverged", "interrupted", "failed"};

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
  json["started"] = utc_text(manifest.started);
  json["ended"] = manifest.ended ? nlohmann::ordered_json(utc_text(*manifest.ended)) : nlohmann::ordered_json(nullptr);
  json["command_line"] = manifest.command_line;
  json["version"] = manifest.version;
  json["git_revision"] = manifest.git_revision;
  json["compiler"] = manifest.compiler;
  json["libtorch"] = manifest.libtorch;
  json["blas"] = manifest.blas;
  json["cpu"] = manifest.cpu;
  json["host"] = manifest.host;
  json["device"] = manifest.device;
  json["threads"] = manifest.threads;
  json["flush_denormals"] = manifest.flush_denormals;
  // A command line may hold bytes that are not UTF-8; they must not cost the run its manifest.
  write_file_atomically(path, json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n');
}

std::optional<RunStatus> status_in_manifest(const std::string& path) {
  std::string text;
  try {
    text = read_file(path);
  } catch (const Error&) {
    return std::nullopt;
  }
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("status") || !json["status"].is_string()) return std::nullopt;
  return status_named(json["status"].get<std::string>());
}

}  // namespace gradflow
