#include "data/utf8.h"

namespace gradflow {

namespace {

/// Bytes of the sequence that starts with `first`; 0 when none does.
std::size_t sequence_length(unsigned char first) {
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first < 0xE0) return 2;
  if (first >= 0xE0 && first < 0xF0) return 3;
  if (first >= 0xF0 && first < 0xF5) return 4;
  return 0;
}

std::optional<char32_t> character_of(std::string_view sequence) {
  const auto first = static_cast<unsigned char>(sequence[0]);
  const std::size_t length = sequence.size();
  char32_t character = length == 1 ? first : first & (0x7Fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    const auto byte = static_cast<unsigned char>(sequence[i]);
    if ((byte & 0xC0u) != 0x80) return std::nullopt;
    character = character << 6 | (byte & 0x3Fu);
  }
  const bool overlong = (length == 3 && character < 0x800) || (length == 4 && character < 0x10000);
  const bool surrogate = character >= 0xD800 && character < 0xE000;
  if (overlong || surrogate || character > 0x10FFFF) return std::nullopt;
  return character;
}

}  // namespace

DecodedText decode_utf8(std::string_view text) {
  DecodedText result;
  result.characters.reserve(text.size());
  for (std::size_t offset = 0; offset < text.size();) {
    const std::size_t length = sequence_length(static_cast<unsigned char>(text[offset]));
    const std::string_view sequence = text.substr(offset, length);
    const auto character = length > 0 && sequence.size() == length ? character_of(sequence) : std::nullopt;
    if (!character) {
      result.fault_offset = offset;
      return result;
    }
    result.characters.push_back(*character);
    offset += length;
  }
  return result;
}

std::string_view without_byte_order_mark(std::string_view text) {
  constexpr std::string_view mark = "\xEF\xBB\xBF";
  return text.starts_with(mark) ? text.substr(mark.size()) : text;
}

}  // namespace gradflow
