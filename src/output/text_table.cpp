#include "output/text_table.h"

#include <algorithm>
#include <stdexcept>

namespace gradflow {
namespace {

bool says_nothing(std::string_view cell) { return cell.empty() || cell == "–"; }

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool begins_with_number(std::string_view cell) {
  if (cell.starts_with('-')) cell.remove_prefix(1);
  return (!cell.empty() && is_digit(cell.front())) || cell.starts_with("nan") || cell.starts_with("inf");
}

}  // namespace

std::size_t display_width(std::string_view text) {
  // Bytes 10xxxxxx continue a code point.
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

void TextTable::add(std::vector<std::string> row) {
  if (row.size() != columns_) throw std::logic_error("TextTable: a row has another number of cells than the table");
  rows_.push_back(std::move(row));
}

std::string TextTable::text(std::size_t indent) const {
  std::vector<std::size_t> widths(columns_);
  std::vector<bool> flush_right(columns_);
  for (std::size_t i = 0; i < columns_; ++i) {
    if (!headings_.empty()) widths[i] = display_width(headings_[i]);
    bool numbers = false, words = false;
    for (const auto& row : rows_) {
      widths[i] = std::max(widths[i], display_width(row[i]));
      if (!says_nothing(row[i])) (begins_with_number(row[i]) ? numbers : words) = true;
    }
    flush_right[i] = numbers && !words;
  }

  std::string text;
  const auto add_line = [&](const std::vector<std::string>& cells) {
    std::string line(indent, ' ');
    for (std::size_t i = 0; i < columns_; ++i) {
      const std::string blanks(widths[i] - display_width(cells[i]), ' ');
      if (i > 0) line += "  ";
      line += flush_right[i] ? blanks + cells[i] : cells[i] + blanks;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  };
  if (!headings_.empty()) add_line(headings_);
  for (const auto& row : rows_) add_line(row);
  return text;
}

}  // namespace gradflow
