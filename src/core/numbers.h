#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gradflow {

// Numbers as text, whatever the locale says.

/// The shortest decimal that reads back to the same bits; non-finite values are exactly "nan", "inf" and "-inf".
std::string shortest(double value);
std::string shortest(float value);
std::string shortest(std::int64_t value);

/// The same, written behind `text`: the way of the CSV files, which write millions of them.
void append_shortest(std::string& text, double value);
void append_shortest(std::string& text, std::int64_t value);

/// Reads what `shortest` writes, all of it or nothing: absent for an empty text, anything before or behind the number,
/// a decimal comma, other spellings of the non-finite values, and numbers beyond the range of a double.
std::optional<double> parse_number(std::string_view text);
/// The same for whole numbers.
std::optional<std::int64_t> parse_integer(std::string_view text);

/// For people: rounded to `digits` ≥ 1 significant digits without trailing zeros, so that a small number never turns
/// into 0.0000. From 0.0001 up to below 10^max(digits, 6) without an exponent (whole digits are never dropped), else
/// as 9.67e-5.
std::string significant(double value, int digits);

}  // namespace gradflow
