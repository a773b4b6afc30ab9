#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/choices.h"
#include "config/json_reader.h"
#include "config/text.h"

namespace gradflow {

// The kinds of values a key can have. Each kind reads a value (and says what is wrong with it), writes it, describes it
// in words and as JSON Schema. `read` returns the fault "what is wrong; what to write instead", empty when there is
// none; `expected` says what to write: "a whole number of blocks, at least 1".

using Json = nlohmann::ordered_json;

/// An interval of numbers.
struct Bounds {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool without_least = false;
  bool without_most = false;

  bool contains(double value) const;
  std::string words() const;  ///< "at least 0 and below 1"; empty when there is no bound
  void add_to(Json& schema) const;
};
inline constexpr Bounds any_number{};
inline constexpr Bounds not_negative{.least = 0};
inline constexpr Bounds positive{.least = 0, .without_least = true};
inline constexpr Bounds fraction{.least = 0, .most = 1};
inline constexpr Bounds fraction_below_one{.least = 0, .most = 1, .without_most = true};

/// A whole number, exact up to 2^63−1: 12, 1e2 and 3.0 are whole, 3.7 is not.
struct Count {
  using Value = std::int64_t;
  std::int64_t least = 0;
  std::int64_t most = std::numeric_limits<std::int64_t>::max();
  std::string_view unit = {};  ///< what is counted, for messages; may be empty

  std::string read(const JsonValue& from, Value& value) const;
  Json write(Value value) const { return value; }
  std::string type() const { return "whole number"; }
  std::string range() const;
  std::string expected() const;
  Json schema() const;
  JsonValue from_option(std::string_view text) const;
};

/// A finite number.
struct Number {
  using Value = double;
  Bounds bounds = any_number;

  std::string read(const JsonValue& from, Value& value) const;
  Json write(Value value) const;
  std::string type() const { return "number"; }
  std::string range() const { return bounds.words(); }
  std::string expected() const;
  Json schema() const;
  JsonValue from_option(std::string_view text) const;
};

struct Flag {
  using Value = bool;

  std::string read(const JsonValue& from, Value& value) const;
  Json write(Value value) const { return value; }
  std::string type() const { return "true or false"; }
  std::string range() const { return ""; }
  std::string expected() const { return "true or false"; }
  Json schema() const { return {{"type", "boolean"}}; }
  JsonValue from_option(std::string_view text) const;
};

/// What every key that is one of a few words shares.
std::string read_word(const JsonValue& from, std::span<const std::string_view> words, std::string_view note,
                      std::size_t& index);

/// One of a few words, named beside the enumeration in choices.h.
template <class Enumeration>
struct Choice {
  using Value = Enumeration;
  static constexpr auto names = names_of(Enumeration{});
  std::string_view note = {};  ///< added where the words are listed

  std::string read(const JsonValue& from, Value& value) const {
    std::size_t index = 0;
    std::string fault = read_word(from, names, note, index);
    if (fault.empty()) value = static_cast<Enumeration>(index);
    return fault;
  }
  Json write(Value value) const { return name_of(value); }
  std::string type() const { return "one of"; }
  std::string range() const { return listed(names); }
  std::string expected() const { return "one of " + listed(names); }
  Json schema() const { return {{"enum", names}}; }
  JsonValue from_option(std::string_view text) const { return JsonValue::of_string(text); }
};

/// A rule for texts: `fault` says what is wrong with one ("empty"), `expected` what to write.
struct TextRule {
  std::string_view expected;
  std::string (*fault)(std::string_view text);
  std::string_view pattern = {};  ///< the rule as a regular expression for the schema; may be empty
};

struct Text {
  using Value = std::string;
  TextRule rule;

  std::string read(const JsonValue& from, Value& value) const;
  Json write(const Value& value) const { return value; }
  std::string type() const { return "text"; }
  std::string range() const { return std::string(rule.expected); }
  std::string expected() const { return std::string(rule.expected); }
  Json schema() const;
  JsonValue from_option(std::string_view text) const { return JsonValue::of_string(text); }
};

/// A list of texts. `lone` allows a single text without the list, which is then also how one is written.
struct Texts {
  using Value = std::vector<std::string>;
  TextRule rule;
  bool lone = false;

  std::string read(const JsonValue& from, Value& value) const;
  Json write(const Value& value) const;
  std::string type() const { return lone ? "text or list of texts" : "list of texts"; }
  std::string range() const { return std::string(rule.expected); }
  std::string expected() const;
  Json schema() const;
  JsonValue from_option(std::string_view text) const;
};

/// Two numbers, [first, second].
struct Pair {
  using Value = std::vector<double>;
  Bounds bounds = any_number;

  std::string read(const JsonValue& from, Value& value) const;
  Json write(const Value& value) const;
  std::string type() const { return "pair of numbers"; }
  std::string range() const { return "each " + bounds.words(); }
  std::string expected() const;
  Json schema() const;
  JsonValue from_option(std::string_view text) const;
};

/// How the absence of a value is written: not at all (it follows from other keys), "auto", or null.
enum class Absent { unwritten, automatic, null };

/// A value that may be absent.
template <class Kind>
struct Optional {
  using Value = std::optional<typename Kind::Value>;
  Kind kind;
  Absent absent = Absent::unwritten;

  std::string read(const JsonValue& from, Value& value) const {
    if (absent == Absent::automatic && from.kind == JsonValue::Kind::string && from.text == "auto") return clear(value);
    if (absent == Absent::null && from.kind == JsonValue::Kind::null) return clear(value);
    typename Kind::Value present{};
    std::string fault = kind.read(from, present);
    if (fault.empty())
      value = present;
    else if (absent != Absent::unwritten)
      fault += ", or " + word();
    return fault;
  }
  Json write(const Value& value) const {
    if (value) return kind.write(*value);
    return absent == Absent::automatic ? Json("auto") : Json(nullptr);
  }
  std::string type() const { return absent == Absent::unwritten ? kind.type() : kind.type() + " or " + word(); }
  std::string range() const { return kind.range(); }
  std::string expected() const {
    return absent == Absent::unwritten ? kind.expected() : kind.expected() + ", or " + word();
  }
  Json schema() const {
    if (absent == Absent::unwritten) return kind.schema();
    return {{"anyOf", {kind.schema(), {{"const", absent == Absent::automatic ? Json("auto") : Json(nullptr)}}}}};
  }
  JsonValue from_option(std::string_view text) const {
    return absent == Absent::automatic && text == "auto" ? JsonValue::of_string(text) : kind.from_option(text);
  }

 private:
  std::string word() const { return absent == Absent::automatic ? "\"auto\"" : "null"; }
  static std::string clear(Value& value) {
    value.reset();
    return "";
  }
};

}  // namespace gradflow
