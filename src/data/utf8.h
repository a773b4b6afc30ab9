#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace gradflow {

/// The code points of UTF-8 text.
struct DecodedText {
  std::vector<char32_t> characters;         ///< up to the first fault
  std::optional<std::size_t> fault_offset;  ///< byte at which the text stops being UTF-8
};

/// Strict: overlong forms, surrogates, values above U+10FFFF and cut sequences are faults.
DecodedText decode_utf8(std::string_view text);

/// The text behind its byte-order mark, if it starts with one.
std::string_view without_byte_order_mark(std::string_view text);

}  // namespace gradflow
