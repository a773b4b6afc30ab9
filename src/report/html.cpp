#include "report/html.h"

#include <cstddef>

namespace gradflow {
namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";

unsigned char byte(std::string_view text, std::size_t at) { return static_cast<unsigned char>(text[at]); }

/// Bytes of the code point at `at`; 0 when there is none.
std::size_t code_point_size(std::string_view text, std::size_t at) {
  const unsigned char first = byte(text, at);
  if (first < 0x80) return first >= 0x20 || first == '\t' || first == '\n' ? 1 : 0;
  const std::size_t size = first >= 0xC2 && first < 0xE0   ? 2
                           : first >= 0xE0 && first < 0xF0 ? 3
                           : first >= 0xF0 && first < 0xF5 ? 4
                                                           : 0;
  if (size == 0 || at + size > text.size()) return 0;
  for (std::size_t i = 1; i < size; ++i)
    if ((byte(text, at + i) & 0xC0) != 0x80) return 0;
  const unsigned char second = byte(text, at + 1);
  const bool too_long = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool beyond = (first == 0xED && second >= 0xA0) || (first == 0xF4 && second >= 0x90);
  const bool no_character = first == 0xEF && second == 0xBF && byte(text, at + 2) >= 0xBE;
  return too_long || beyond || no_character ? 0 : size;
}

}  // namespace

std::string valid_utf8(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = code_point_size(text, at);
    result += size > 0 ? text.substr(at, size) : replacement;
    at += size > 0 ? size : 1;
  }
  return result;
}

std::string escaped_html(std::string_view text) {
  std::string result;
  for (const char c : valid_utf8(text)) switch (c) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '"': result += "&quot;"; break;
      case '\'': result += "&#39;"; break;
      default: result += c;
    }
  return result;
}

std::string escaped_markdown(std::string_view text) {
  std::string result;
  for (const char c : valid_utf8(text)) {
    if (c == '&')
      result += "&amp;";
    else if (c == '<')
      result += "&lt;";
    else if (c == '\n')
      result += ' ';
    else {
      if (std::string_view("\\`*_[]|#~").find(c) != std::string_view::npos) result += '\\';
      result += c;
    }
  }
  return result;
}

std::string escaped_script(const std::string& json) {
  std::string result;
  for (const char c : json)
    if (c == '<')
      result += "\\u003c";
    else
      result += c;
  return result;
}

}  // namespace gradflow
