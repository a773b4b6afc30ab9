#include "core/numbers.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>

namespace gradflow {
namespace {

// The longest are fixed notation at 17 digits behind four zeros and scientific notation: both below 64 characters.
constexpr std::size_t buffer_size = 512;

/// "nan", "inf", "-inf", or nothing for a finite value; std::to_chars alone would write the sign of a nan.
template <class Float>
std::string_view nonfinite_name(Float value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return {};
}

template <class Value>
void append_digits(std::string& text, Value value) {
  std::array<char, buffer_size> buffer;
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  text.append(buffer.data(), result.ptr);
}

template <class Float>
std::string shortest_float(Float value) {
  std::string text(nonfinite_name(value));
  if (text.empty()) append_digits(text, value);
  return text;
}

std::string formatted(double value, std::chars_format format, int precision) {
  std::array<char, buffer_size> buffer;
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, format, precision);
  return {buffer.data(), result.ptr};
}

void drop_trailing_zeros(std::string& text) {
  if (text.find('.') == std::string::npos) return;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
}

template <class Value>
std::optional<Value> parse_all(std::string_view text) {
  Value value{};
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  if (result.ec != std::errc{} || result.ptr != end) return std::nullopt;
  return value;
}

}  // namespace

std::string shortest(double value) { return shortest_float(value); }
std::string shortest(float value) { return shortest_float(value); }

std::string shortest(std::int64_t value) {
  std::string text;
  append_digits(text, value);
  return text;
}

void append_shortest(std::string& text, double value) {
  const std::string_view name = nonfinite_name(value);
  if (name.empty())
    append_digits(text, value);
  else
    text += name;
}

void append_shortest(std::string& text, std::int64_t value) { append_digits(text, value); }

std::optional<double> parse_number(std::string_view text) {
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  // std::from_chars also takes "infinity", "NAN" and ".5", which nothing here writes.
  const std::string_view unsigned_text = text.starts_with('-') ? text.substr(1) : text;
  if (unsigned_text.empty() || unsigned_text.front() < '0' || unsigned_text.front() > '9') return std::nullopt;
  return parse_all<double>(text);
}

std::optional<std::int64_t> parse_integer(std::string_view text) { return parse_all<std::int64_t>(text); }

std::string significant(double value, int digits) {
  const std::string_view name = nonfinite_name(value);
  if (!name.empty()) return std::string(name);
  if (value == 0) return "0";
  digits = std::clamp(digits, 1, 17);

  // The exponent after rounding: 9.9996e-5 at three digits is 1e-4.
  std::string scientific = formatted(value, std::chars_format::scientific, digits - 1);
  const std::size_t e = scientific.find('e');
  const bool negative_exponent = scientific[e + 1] == '-';
  const int magnitude = static_cast<int>(parse_integer(std::string_view(scientific).substr(e + 2)).value());
  const int exponent = negative_exponent ? -magnitude : magnitude;

  if (exponent >= -4 && exponent < std::max(digits, 6)) {
    std::string text = formatted(value, std::chars_format::fixed, std::max(digits - 1 - exponent, 0));
    drop_trailing_zeros(text);
    return text;
  }
  scientific.erase(e);
  drop_trailing_zeros(scientific);
  return scientific + 'e' + shortest(std::int64_t{exponent});
}

}  // namespace gradflow
