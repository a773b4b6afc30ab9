#include "output/text_table.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>

namespace gradflow {
namespace {

constexpr std::size_t gap = 2;  // blanks between two columns

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

std::vector<TextTable::Setting> TextTable::settings() const {
  std::vector<Setting> settings(columns_);
  for (std::size_t i = 0; i < columns_; ++i) {
    if (!headings_.empty()) settings[i].width = display_width(headings_[i]);
    bool numbers = false, words = false;
    for (const auto& row : rows_) {
      settings[i].width = std::max(settings[i].width, display_width(row[i]));
      if (!says_nothing(row[i])) (begins_with_number(row[i]) ? numbers : words) = true;
    }
    settings[i].flush_right = numbers && !words;
  }
  return settings;
}

std::string TextTable::text_of(const std::vector<std::size_t>& columns, const std::vector<Setting>& settings,
                               std::size_t indent) const {
  std::string text;
  const auto add_line = [&](const std::vector<std::string>& cells) {
    std::string line(indent, ' ');
    for (const std::size_t i : columns) {
      const std::string blanks(settings[i].width - display_width(cells[i]), ' ');
      if (i != columns.front()) line += std::string(gap, ' ');
      line += settings[i].flush_right ? blanks + cells[i] : cells[i] + blanks;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  };
  if (!headings_.empty()) add_line(headings_);
  for (const auto& row : rows_) add_line(row);
  return text;
}

std::string TextTable::text(std::size_t indent) const {
  std::vector<std::size_t> all(columns_);
  std::iota(all.begin(), all.end(), std::size_t{0});
  return text_of(all, settings(), indent);
}

std::size_t TextTable::width_of_first(std::size_t columns) const {
  std::size_t width = 0;
  const std::vector<Setting> settings = this->settings();
  for (std::size_t i = 0; i < std::min(columns, columns_); ++i) width += (i > 0 ? gap : 0) + settings[i].width;
  return width;
}

std::string TextTable::text_within(std::size_t width, std::size_t repeated) const {
  const std::vector<Setting> settings = this->settings();
  std::vector<std::size_t> front(std::min(repeated, columns_));
  std::iota(front.begin(), front.end(), std::size_t{0});
  const std::size_t front_width = front.empty() ? 0 : width_of_first(front.size()) + gap;

  std::string text;
  std::vector<std::size_t> columns = front;
  std::size_t used = front_width;
  for (std::size_t i = front.size(); i < columns_; ++i) {
    const bool fits = used + settings[i].width <= width;
    if (!fits && columns.size() > front.size()) {
      text += text_of(columns, settings, 0) + '\n';
      columns = front;
      used = front_width;
    }
    columns.push_back(i);
    used += settings[i].width + gap;
  }
  return text + text_of(columns, settings, 0);
}

}  // namespace gradflow
