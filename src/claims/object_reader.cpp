#include "claims/object_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "config/nearest.h"
#include "config/text.h"

namespace gradflow {

ObjectReader::ObjectReader(const JsonValue& value, std::string path, std::string_view file, Faults& faults)
    : value_(value), path_(std::move(path)), file_(file), faults_(faults) {
  if (value.kind != JsonValue::Kind::object)
    refuse(fmt::format("must be an object with keys, got {}; write {{…}}", described(value)));
}

std::string ObjectReader::path_of(std::string_view key) const {
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

const JsonValue* ObjectReader::find(std::string_view key) {
  asked_.push_back(key);
  if (value_.kind != JsonValue::Kind::object) return nullptr;
  const auto found = std::find(value_.names.begin(), value_.names.end(), key);
  return found == value_.names.end() ? nullptr
                                     : &value_.elements[static_cast<std::size_t>(found - value_.names.begin())];
}

const JsonValue* ObjectReader::require(std::string_view key, std::string_view remedy) {
  const JsonValue* found = find(key);
  if (found == nullptr && value_.kind == JsonValue::Kind::object)
    refuse(value_, key, fmt::format("missing; {}", remedy));
  return found;
}

std::string ObjectReader::read_text(const JsonValue& at, std::string_view key) {
  if (at.kind == JsonValue::Kind::string && !at.text.empty()) return at.text;
  refuse(at, key, fmt::format("must be a text, got {}; write it in quotes", described(at)));
  return "";
}

std::string ObjectReader::require_text(std::string_view key, std::string_view remedy) {
  const JsonValue* found = require(key, remedy);
  return found == nullptr ? "" : read_text(*found, key);
}

std::string ObjectReader::text_or(std::string_view key, std::string_view otherwise) {
  const JsonValue* found = find(key);
  return found == nullptr ? std::string(otherwise) : read_text(*found, key);
}

void ObjectReader::refuse_others() {
  for (std::size_t i = 0; i < value_.names.size(); ++i) {
    const std::string& name = value_.names[i];
    if (std::find(asked_.begin(), asked_.end(), name) == asked_.end())
      refuse(value_.elements[i], name, "unknown key; " + did_you_mean_word(name, asked_));
  }
}

void ObjectReader::refuse(const JsonValue& at, std::string_view key, std::string_view fault) {
  faults_.add(line_of(file_, at.line), path_of(key), fault);
}

void ObjectReader::refuse(std::string_view fault) { faults_.add(line_of(file_, value_.line), path_, fault); }

std::string did_you_mean_word(std::string_view word, const std::vector<std::string_view>& words) {
  if (words.empty()) return "leave it out";
  const std::string_view nearest = nearest_word(word, words);
  return is_near(word, nearest) ? fmt::format("did you mean {}?", nearest) : "there are " + listed(words);
}

}  // namespace gradflow
