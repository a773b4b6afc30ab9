#include "config/identity.h"

#include <fmt/format.h>

#include <cstdint>
#include <filesystem>

#include "config/fields.h"
#include "config/resolved.h"
#include "core/philox.h"

namespace gradflow {
namespace {

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

}  // namespace

std::string run_id(const Config& config, std::string_view files_hash) {
  constexpr std::size_t longest = 100;
  const Config full = resolved(config);
  std::string readable;
  std::string canonical;
  for (const auto& field : fields()) {
    if (!takes_part(field->key())) continue;
    const bool is_files = field->key() == "data.files";
    const Json value = field->value(full);
    const std::string hashed = is_files && !files_hash.empty()
                                   ? std::string(files_hash)
                                   : value.dump(-1, ' ', false, Json::error_handler_t::replace);
    canonical += fmt::format("{}={}\n", field->key(), hashed);
    if (!field->is_default(full))
      readable += fmt::format("{}{}={}", readable.empty() ? "" : "_", last_component(field->key()),
                              plain(is_files ? file_names(full) : value_in_words(value)));
  }
  if (readable.empty()) readable = "defaults";
  const std::uint64_t hash = fnv1a64(canonical);
  return fmt::format("{}-{:08x}", readable.substr(0, longest), static_cast<std::uint32_t>(hash ^ (hash >> 32)));
}

}  // namespace gradflow
