#include "config/schema.h"

#include <fmt/format.h>

#include <algorithm>

#include "config/fields.h"
#include "config/resolved.h"

namespace gradflow {
namespace {

Json empty_object_schema() {
  return {{"type", "object"}, {"additionalProperties", false}, {"properties", Json::object()}};
}

/// The place of a key or group in a schema: /properties/record/properties/spikes.
Json::json_pointer place_of(std::string_view key) {
  Json::json_pointer place;
  while (true) {
    const std::size_t dot = key.find('.');
    place /= "properties";
    place /= std::string(key.substr(0, dot));
    if (dot == std::string_view::npos) return place;
    key.remove_prefix(dot + 1);
  }
}

std::string in_table(std::string text) {
  for (std::size_t i = text.find('|'); i != std::string::npos; i = text.find('|', i + 2)) text.insert(i, "\\");
  return text;
}

/// The default as it would be written, or in words where it follows from other keys.
std::string default_text(const Field& field) {
  if (!field.default_words().empty()) return field.default_words();
  return fmt::format("`{}`", field.value(Config{}).dump());
}

}  // namespace

Json schema() {
  Json out{{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"title", "gradflow configuration"}};
  out.update(empty_object_schema());
  for (const std::string_view group : field_groups()) out[place_of(group)] = empty_object_schema();
  for (const auto& field : fields()) {
    Json value = field->schema();
    if (field->default_words().empty()) {
      value["description"] = field->meaning();
      value["default"] = field->value(Config{});
    } else {
      value["description"] = fmt::format("{} (default: {})", field->meaning(), field->default_words());
    }
    out[place_of(field->key())] = value;
  }
  out[place_of("derived")] = {
      {"description", "numbers that follow from the other keys; written by runs, ignored when read"}};
  return out;
}

std::string key_table() {
  std::string out = "| key | type | default | range | meaning |\n| --- | --- | --- | --- | --- |\n";
  for (const auto& field : fields())
    out += fmt::format("| `{}` | {} | {} | {} | {} |\n", field->key(), in_table(field->type()),
                       in_table(default_text(*field)), in_table(field->range()), in_table(field->meaning()));
  return out;
}

}  // namespace gradflow
