#include "config/identity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "config/fields.h"
#include "config/resolved.h"
#include "core/philox.h"

namespace gradflow {
namespace {

constexpr auto leading = std::to_array<std::string_view>(
    {"model.stack", "model.placement", "model.depth", "model.width", "train.learning_rate", "train.warmup", "seed",
     "model.residual", "model.norm", "model.initialization", "train.optimizer", "train.steps"});

bool takes_part(std::string_view key) { return key != "name" && !key.starts_with("checkpoint."); }

std::string plain(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool kept =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '+' || c == '-';
    out += kept ? c : '_';
  }
  return out;
}

std::string file_names(const Config& config) {
  std::string out;
  for (const std::string& file : config.data.files)
    out += (out.empty() ? "" : "+") + std::filesystem::path(file).filename().string();
  return out;
}

bool is_files(const Field& field) { return field.key() == "data.files"; }

/// One line a key, in the order of the fields.
std::string canonical(const Config& full, std::string_view files_hash) {
  std::string out;
  for (const auto& field : fields()) {
    if (!takes_part(field->key())) continue;
    const std::string value = is_files(*field) && !files_hash.empty()
                                  ? std::string(files_hash)
                                  : field->value(full).dump(-1, ' ', false, Json::error_handler_t::replace);
    out += fmt::format("{}={}\n", field->key(), value);
  }
  return out;
}

/// The fields, those that are read first in front.
std::vector<const Field*> fields_to_read() {
  std::vector<const Field*> out;
  for (const std::string_view key : leading) out.push_back(find_field(key));
  for (const auto& field : fields())
    if (std::find(leading.begin(), leading.end(), field->key()) == leading.end()) out.push_back(field.get());
  return out;
}

}  // namespace

std::span<const std::string_view> leading_keys() { return leading; }

std::uint64_t run_hash(const Config& config, std::string_view files_hash) {
  return fnv1a64(canonical(resolved(config), files_hash));
}

std::string run_id(const Config& config, std::string_view files_hash) {
  constexpr std::size_t longest = 100;
  const Config full = resolved(config);
  std::string readable;
  for (const Field* field : fields_to_read())
    if (takes_part(field->key()) && !field->is_default(full))
      readable += fmt::format("{}{}={}", readable.empty() ? "" : "_", last_component(field->key()),
                              plain(is_files(*field) ? file_names(full) : value_in_words(field->value(full))));
  if (readable.empty()) readable = "defaults";
  const std::uint64_t hash = run_hash(full, files_hash);
  return fmt::format("{}-{:08x}", readable.substr(0, longest), static_cast<std::uint32_t>(hash ^ (hash >> 32)));
}

}  // namespace gradflow
