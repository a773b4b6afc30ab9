#include "output/paragraph.h"

#include <algorithm>

#include "output/text_table.h"

namespace gradflow {

std::string paragraph(std::string_view label, std::string_view text, std::size_t width) {
  const std::size_t indent = display_width(label);
  std::string out(label);
  std::size_t column = indent;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    const std::size_t columns = display_width(word);
    if (column > indent && column + 1 + columns > width) {
      out += '\n' + std::string(indent, ' ');
      column = indent;
    }
    if (column > indent) out += ' ';
    out += word;
    column += columns + (column > indent ? 1 : 0);
  }
  return out + '\n';
}

}  // namespace gradflow
