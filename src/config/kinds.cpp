#include "config/kinds.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "config/nearest.h"
#include "core/error.h"

namespace gradflow {
namespace {

enum class Whole { exact, not_whole, too_large };

/// The whole number that a JSON number's digits stand for ("12", "1e2", "3.0"), never by way of a double.
Whole whole_number(std::string_view digits, std::int64_t& value) {
  const bool negative = digits.starts_with('-');
  if (negative) digits.remove_prefix(1);
  std::int64_t exponent = 0;
  if (const std::size_t e = digits.find_first_of("eE"); e != std::string_view::npos) {
    std::string_view written = digits.substr(e + 1);
    if (written.starts_with('+')) written.remove_prefix(1);
    const auto [end, error] = std::from_chars(written.data(), written.data() + written.size(), exponent);
    constexpr std::int64_t far_beyond = std::int64_t{1} << 40;
    if (error == std::errc::result_out_of_range) exponent = written.starts_with('-') ? -far_beyond : far_beyond;
    exponent = std::clamp(exponent, -far_beyond, far_beyond);
    digits = digits.substr(0, e);
  }
  std::string significant(digits);
  if (const std::size_t point = significant.find('.'); point != std::string::npos) {
    exponent -= static_cast<std::int64_t>(significant.size() - point - 1);
    significant.erase(point, 1);
  }
  significant.erase(0, significant.find_first_not_of('0'));
  if (significant.empty()) {
    value = 0;
    return Whole::exact;
  }
  const std::size_t kept = significant.find_last_not_of('0') + 1;
  exponent += static_cast<std::int64_t>(significant.size() - kept);
  significant.resize(kept);
  if (exponent < 0) return Whole::not_whole;
  if (static_cast<std::int64_t>(significant.size()) + exponent > 19) return Whole::too_large;
  significant.append(static_cast<std::size_t>(exponent), '0');
  const auto [end, error] = std::from_chars(significant.data(), significant.data() + significant.size(), value);
  if (error != std::errc()) return Whole::too_large;
  if (negative) value = -value;
  return Whole::exact;
}

/// A value behind --set: JSON, or a text when it is none, which the kind then refuses by name.
JsonValue json_or_text(std::string_view text) {
  try {
    Faults faults;
    JsonValue value = read_json(text, "", faults);
    faults.raise();
    return value;
  } catch (const Error&) {
    return JsonValue::of_string(text);
  }
}

template <class Kind>
std::string wrong_type(const Kind& kind, std::string_view what, const JsonValue& from) {
  const std::string got = fmt::format("must be {}, got {}; ", what, described(from));
  if (from.kind == JsonValue::Kind::string) {
    const JsonValue unquoted = json_or_text(from.text);
    typename Kind::Value value{};
    if (unquoted.kind != JsonValue::Kind::string && kind.read(unquoted, value).empty())
      return fmt::format("{}write {} without quotes", got, shown(from.text));
  }
  return got + "write " + kind.expected();
}

/// Whole doubles without ".0", as a person writes them; they read back the same.
Json number_json(double value) {
  const bool whole = value == std::floor(value) && std::abs(value) < 1e15 && !(value == 0 && std::signbit(value));
  return whole ? Json(static_cast<std::int64_t>(value)) : Json(value);
}

std::string number_text(double value) { return number_json(value).dump(); }

/// "2^63−1" and the like would be noise where nothing is bounded.
bool is_bounded(std::int64_t most) { return most != std::numeric_limits<std::int64_t>::max(); }

std::string with_range(std::string what, const std::string& range) {
  return range.empty() ? what : what + ", " + range;
}

}  // namespace

bool Bounds::contains(double value) const {
  return (without_least ? value > least : value >= least) && (without_most ? value < most : value <= most);
}

std::string Bounds::words() const {
  std::string out;
  if (std::isfinite(least) && std::isfinite(most) && !without_least && !without_most)
    return fmt::format("{} to {}", number_text(least), number_text(most));
  if (std::isfinite(least)) out = (without_least ? "greater than " : "at least ") + number_text(least);
  if (std::isfinite(most))
    out += (out.empty() ? "" : " and ") + ((without_most ? "below " : "at most ") + number_text(most));
  return out;
}

void Bounds::add_to(Json& schema) const {
  if (std::isfinite(least)) schema[without_least ? "exclusiveMinimum" : "minimum"] = number_json(least);
  if (std::isfinite(most)) schema[without_most ? "exclusiveMaximum" : "maximum"] = number_json(most);
}

std::string Count::read(const JsonValue& from, Value& value) const {
  const std::string what = unit.empty() ? "a whole number" : fmt::format("a whole number of {}", unit);
  if (from.kind != JsonValue::Kind::number) return wrong_type(*this, what, from);
  if (!std::isfinite(from.number)) return fmt::format("{} is not finite; write {}", shown(from.text), expected());
  std::int64_t read = 0;
  const Whole whole = whole_number(from.text, read);
  if (whole == Whole::not_whole) return fmt::format("{} is not {}; write {}", shown(from.text), what, expected());
  if (whole == Whole::too_large || read < least || read > most)
    return fmt::format("{} is out of range; write {}", shown(from.text), expected());
  value = read;
  return "";
}

std::string Count::range() const {
  return is_bounded(most) ? fmt::format("{} to {}", least, most) : fmt::format("at least {}", least);
}

std::string Count::expected() const {
  return with_range(unit.empty() ? "a whole number" : fmt::format("a whole number of {}", unit), range());
}

Json Count::schema() const {
  Json out{{"type", "integer"}, {"minimum", least}};
  if (is_bounded(most)) out["maximum"] = most;
  return out;
}

JsonValue Count::from_option(std::string_view text) const { return json_or_text(text); }

std::string Number::read(const JsonValue& from, Value& value) const {
  if (from.kind != JsonValue::Kind::number) return wrong_type(*this, "a number", from);
  if (!std::isfinite(from.number)) return fmt::format("{} is not finite; write {}", shown(from.text), expected());
  if (!bounds.contains(from.number)) return fmt::format("{} is out of range; write {}", shown(from.text), expected());
  value = from.number;
  return "";
}

Json Number::write(Value value) const { return number_json(value); }

std::string Number::expected() const { return with_range("a number", range()); }

Json Number::schema() const {
  Json out{{"type", "number"}};
  bounds.add_to(out);
  return out;
}

JsonValue Number::from_option(std::string_view text) const { return json_or_text(text); }

std::string Flag::read(const JsonValue& from, Value& value) const {
  if (from.kind != JsonValue::Kind::boolean) return wrong_type(*this, "true or false", from);
  value = from.boolean;
  return "";
}

JsonValue Flag::from_option(std::string_view text) const { return json_or_text(text); }

std::string read_word(const JsonValue& from, std::span<const std::string_view> words, std::string_view note,
                      std::size_t& index) {
  const std::string remedy = fmt::format("write one of {}{}{}", listed(words), note.empty() ? "" : " ", note);
  if (from.kind != JsonValue::Kind::string) return fmt::format("must be a string, got {}; {}", described(from), remedy);
  const auto found = std::find(words.begin(), words.end(), from.text);
  if (found == words.end()) {
    const std::string_view nearest = nearest_word(from.text, words);
    return fmt::format("{} is not a choice{}; {}", in_quotes(from.text),
                       is_near(from.text, nearest) ? fmt::format(" (the nearest is {})", nearest) : "", remedy);
  }
  index = static_cast<std::size_t>(found - words.begin());
  return "";
}

std::string Text::read(const JsonValue& from, Value& value) const {
  if (from.kind != JsonValue::Kind::string)
    return fmt::format("must be a string, got {}; write {}", described(from), rule.expected);
  if (const std::string fault = rule.fault(from.text); !fault.empty())
    return fmt::format("{} {}; write {}", in_quotes(from.text), fault, rule.expected);
  value = from.text;
  return "";
}

Json Text::schema() const {
  Json out{{"type", "string"}};
  if (!rule.pattern.empty()) out["pattern"] = rule.pattern;
  return out;
}

std::string Texts::read(const JsonValue& from, Value& value) const {
  Value read;
  const Text text{rule};
  if (lone && from.kind == JsonValue::Kind::string) {
    read.emplace_back();
    if (const std::string fault = text.read(from, read.back()); !fault.empty()) return fault;
  } else if (from.kind != JsonValue::Kind::array) {
    const std::string remedy =
        from.kind == JsonValue::Kind::string ? fmt::format("[{}]", in_quotes(from.text)) : expected();
    return fmt::format("must be {}, got {}; write {}", lone ? "a string or a list of strings" : "a list of strings",
                       described(from), remedy);
  }
  for (const JsonValue& element : from.elements) {
    read.emplace_back();
    if (std::string fault = text.read(element, read.back()); !fault.empty()) return fault;
  }
  value = std::move(read);
  return "";
}

Json Texts::write(const Value& value) const {
  if (lone && value.size() == 1) return value[0];
  return value;
}

std::string Texts::expected() const { return fmt::format("a list [\"…\", …], each {}", rule.expected); }

Json Texts::schema() const {
  const Json one = Text{rule}.schema();
  const Json many{{"type", "array"}, {"items", one}};
  return lone ? Json{{"anyOf", {one, many}}} : many;
}

JsonValue Texts::from_option(std::string_view text) const {
  if (text.starts_with('[')) return json_or_text(text);
  if (lone) return JsonValue::of_string(text);
  JsonValue list;
  list.kind = JsonValue::Kind::array;
  list.elements.push_back(JsonValue::of_string(text));
  return list;
}

std::string Pair::read(const JsonValue& from, Value& value) const {
  if (from.kind != JsonValue::Kind::array || from.elements.size() != 2) {
    const std::string got =
        from.kind == JsonValue::Kind::array ? fmt::format("a list of {}", from.elements.size()) : described(from);
    return fmt::format("must be two numbers, got {}; write {}", got, expected());
  }
  Value read(2);
  const Number number{bounds};
  for (std::size_t i = 0; i < 2; ++i)
    if (std::string fault = number.read(from.elements[i], read[i]); !fault.empty()) return fault;
  value = std::move(read);
  return "";
}

Json Pair::write(const Value& value) const {
  Json out = Json::array();
  for (const double number : value) out.push_back(number_json(number));
  return out;
}

std::string Pair::expected() const { return with_range("two numbers [first, second]", range()); }

Json Pair::schema() const {
  return {{"type", "array"}, {"items", Number{bounds}.schema()}, {"minItems", 2}, {"maxItems", 2}};
}

JsonValue Pair::from_option(std::string_view text) const { return json_or_text(text); }

}  // namespace gradflow
