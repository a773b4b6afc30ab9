#include "config/overrides.h"

#include <fmt/format.h>

#include <algorithm>

#include "config/fields.h"
#include "config/nearest.h"
#include "config/text.h"
#include "core/error.h"

namespace gradflow {
namespace {

std::vector<std::string_view> every_key() {
  std::vector<std::string_view> keys;
  for (const auto& field : fields()) keys.push_back(field->key());
  return keys;
}

/// Why `given` names no single key.
std::string unknown_key(std::string_view given, std::span<const std::string_view> meant) {
  if (!meant.empty()) return fmt::format("fits several keys; write one of {}", listed(meant));
  const std::string inside = std::string(given) + ".";
  for (const auto& field : fields())
    if (field->key().starts_with(inside))
      return fmt::format("is a group of keys; write one of its keys, such as {}=…", field->key());
  return "unknown key; " + did_you_mean(nearest_keys(given, false));
}

}  // namespace

std::vector<std::string_view> keys_meant(std::string_view given, std::span<const std::string_view> keys) {
  if (given.empty()) return {};
  if (std::find(keys.begin(), keys.end(), given) != keys.end()) return {given};
  std::vector<std::string_view> endings;
  for (const std::string_view key : keys)
    if (key.ends_with(given) && key[key.size() - given.size() - 1] == '.') endings.push_back(key);
  return endings;
}

void apply_overrides(std::span<const std::string> overrides, Config& config, Origins& origins, Faults& faults) {
  const auto keys = every_key();
  for (std::size_t i = 0; i < overrides.size(); ++i) {
    const std::string_view text = overrides[i];
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos || equals == 0)
      throw Error(fmt::format("--set {}: has no KEY=VALUE; write for example --set model.depth=24", shown(text)),
                  Exit::usage);
    const std::string_view given = text.substr(0, equals);
    const Origin origin = option_named(given, i);
    const auto meant = keys_meant(given, keys);
    if (meant.size() != 1) {
      faults.add(origin, "", unknown_key(given, meant));
      continue;
    }
    const Field& field = *find_field(meant[0]);
    if (const std::string fault = field.assign(field.from_option(text.substr(equals + 1)), config); !fault.empty())
      faults.add(origin, field.key(), fault);
    origins.keys[std::string(field.key())] = origin;
  }
}

}  // namespace gradflow
