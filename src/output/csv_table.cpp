#include "output/csv_table.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/files.h"
#include "core/numbers.h"

namespace gradflow {

CsvTable::CsvTable(std::string path, std::string text) : path_(std::move(path)), text_(std::move(text)) {
  text_.erase(text_.find_last_of('\n') + 1);  // npos + 1 = 0: no whole line at all
  if (text_.empty()) throw Error(path_ + ": has no header; the run that should have written it has not begun");

  std::size_t line_number = 0;
  for (std::size_t start = 0; start < text_.size();) {
    const std::size_t line_end = text_.find('\n', start);
    const std::size_t end = line_end > start && text_[line_end - 1] == '\r' ? line_end - 1 : line_end;
    ++line_number;
    const std::size_t first = cells_.size();
    for (std::size_t cell = start;;) {
      const std::size_t comma = std::min(text_.find(',', cell), end);
      if (line_number == 1)
        columns_.push_back(text_.substr(cell, comma - cell));
      else
        cells_.push_back({cell, comma - cell});
      if (comma == end) break;
      cell = comma + 1;
    }
    const std::size_t count = cells_.size() - first;
    if (line_number > 1 && count != columns_.size())
      throw Error(path_ + ":" + std::to_string(line_number) + ": has " + std::to_string(count) +
                  " cells where the header has " + std::to_string(columns_.size()) +
                  "; the file was changed by something else: run again");
    start = line_end + 1;
  }
}

std::size_t CsvTable::column(std::string_view name) const {
  const auto found = std::find(columns_.begin(), columns_.end(), name);
  if (found != columns_.end()) return static_cast<std::size_t>(found - columns_.begin());
  std::string known;
  for (const std::string& column : columns_) known += (known.empty() ? "" : ", ") + column;
  throw Error(path_ + ": has no column " + std::string(name) + "; it has " + known);
}

std::string_view CsvTable::text(std::size_t row, std::size_t column) const {
  const Place place = cells_.at(row * columns_.size() + column);
  return std::string_view(text_).substr(place.start, place.size);
}

std::string CsvTable::cell_place(std::size_t row, std::size_t column) const {
  return path_ + ":" + std::to_string(row + 2) + ": " + columns_[column] + ": \"" + std::string(text(row, column)) +
         '"';
}

std::optional<double> CsvTable::number(std::size_t row, std::size_t column) const {
  const std::string_view cell = text(row, column);
  if (cell.empty()) return std::nullopt;
  const auto value = parse_number(cell);
  if (!value)
    throw Error(cell_place(row, column) + " is not a number; write one with a decimal point, nan, inf or -inf");
  return value;
}

std::int64_t CsvTable::integer(std::size_t row, std::size_t column) const {
  const auto value = parse_integer(text(row, column));
  if (!value) throw Error(cell_place(row, column) + " is not a whole number; write one");
  return *value;
}

CsvTable read_csv(const std::string& path) { return CsvTable(path, read_file(path)); }

CsvTable read_csv(const std::string& path, std::span<const Column> expected) {
  CsvTable table = read_csv(path);
  std::string header;
  for (const std::string& column : table.columns()) header += (header.empty() ? "" : ",") + column;
  if (const std::string fault = header_fault(header, expected); !fault.empty()) throw Error(path + ":1: " + fault);
  return table;
}

}  // namespace gradflow
