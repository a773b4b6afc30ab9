#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/faults.h"

namespace gradflow {

/// A JSON value that remembers where it stands and how a number was written, so that faults name a line and integers
/// stay exact.
struct JsonValue {
  enum class Kind { null, boolean, number, string, array, object };

  Kind kind = Kind::null;
  std::int64_t line = 1;  ///< of its key where it stands in an object
  bool boolean = false;
  double number = 0;                ///< infinite when it lies beyond the range of a double
  std::string text;                 ///< of a string, its content; of a number, its digits
  std::vector<JsonValue> elements;  ///< of an array or object
  std::vector<std::string> names;   ///< of an object: the names of its elements

  static JsonValue of_string(std::string_view text);
};

/// "a string ("x")", "3.7", "a list": for messages that say what was found.
std::string described(const JsonValue& value);

/// The value as JSON in one line; numbers with the digits that were read.
std::string json_text(const JsonValue& value);

/// What to write behind --set KEY= for it: a text as it is, anything else as JSON.
std::string option_text(const JsonValue& value);

/// Reads JSON text: UTF-8, with or without a byte-order mark, with // and /* */ comments, at most 100 levels deep.
/// Repeated keys are added to `faults`; text that is not JSON throws Error "FILE:LINE: fault; remedy" at once, because
/// nothing behind such a place can be trusted.
JsonValue read_json(std::string_view text, std::string_view file, Faults& faults);

}  // namespace gradflow
