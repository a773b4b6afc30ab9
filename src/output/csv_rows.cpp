#include "output/csv_rows.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <stdexcept>
#include <vector>

#include "core/error.h"
#include "core/files.h"
#include "core/numbers.h"

namespace gradflow {
namespace {

constexpr std::size_t not_wanted = std::numeric_limits<std::size_t>::max();

/// For each column of the file the place among the wanted ones.
std::vector<std::size_t> places(std::span<const Column> expected, std::span<const std::string_view> wanted) {
  std::vector<std::size_t> result(expected.size(), not_wanted);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto found =
        std::find_if(expected.begin(), expected.end(), [&](const Column& column) { return column.name == wanted[i]; });
    if (found == expected.end()) throw std::logic_error("no column of this file: " + std::string(wanted[i]));
    result[static_cast<std::size_t>(found - expected.begin())] = i;
  }
  return result;
}

std::string_view without_carriage_return(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

/// Takes the first cell off the line, with the comma behind it; `more` says whether there was one. What a cell in
/// quotes means (RFC 4180) is kept in `meant`.
std::string_view take_cell(std::string_view& line, bool& more, std::deque<std::string>& meant) {
  std::size_t end = 0;
  std::string* text = nullptr;
  if (line.starts_with('"')) {
    text = &meant.emplace_back();
    for (end = 1; end < line.size(); ++end) {
      const bool is_quote = line[end] == '"';
      if (is_quote && (end + 1 == line.size() || line[++end] != '"')) break;
      *text += line[end];
    }
  }
  end = std::min(line.find(',', end), line.size());
  const std::string_view cell = text != nullptr ? std::string_view(*text) : line.substr(0, end);
  more = end < line.size();
  line.remove_prefix(more ? end + 1 : end);
  return cell;
}

}  // namespace

void CsvRow::refuse(std::size_t i, std::string_view expected) const {
  throw Error(path_ + ":" + std::to_string(line_) + ": " + std::string(names_[i]) + ": \"" + std::string(cells_[i]) +
              "\" is not " + std::string(expected) + "; the file was changed by something else: run again");
}

double CsvRow::number(std::size_t i) const {
  return optional_number(i).value_or(std::numeric_limits<double>::quiet_NaN());
}

std::optional<double> CsvRow::optional_number(std::size_t i) const {
  if (cells_[i].empty()) return std::nullopt;
  const std::optional<double> value = parse_number(cells_[i]);
  if (!value) refuse(i, "a number");
  return value;
}

std::int64_t CsvRow::integer(std::size_t i) const {
  const std::optional<std::int64_t> value = parse_integer(cells_[i]);
  if (!value) refuse(i, "a whole number");
  return *value;
}

void read_csv_rows(const std::string& path, std::span<const Column> expected, std::span<const std::string_view> wanted,
                   const std::function<void(const CsvRow&)>& take) {
  const std::vector<std::size_t> place_of = places(expected, wanted);
  const std::string content = read_file(path);
  const std::string_view text = std::string_view(content).substr(0, content.find_last_of('\n') + 1);
  if (text.empty()) throw Error(path + ": has no header; the run that should have written it has not begun");
  const std::size_t header_end = text.find('\n');
  if (const std::string fault = header_fault(without_carriage_return(text.substr(0, header_end)), expected);
      !fault.empty())
    throw Error(path + ":1: " + fault);

  std::vector<std::string_view> cells(wanted.size());
  std::deque<std::string> meant;
  std::size_t line_number = 1;
  for (std::size_t start = header_end + 1; start < text.size();) {
    ++line_number;
    const std::size_t end = text.find('\n', start);
    std::string_view rest = without_carriage_return(text.substr(start, end - start));
    std::size_t count = 0;
    meant.clear();
    for (bool more = true; more; ++count) {
      const std::string_view cell = take_cell(rest, more, meant);
      if (count < place_of.size() && place_of[count] != not_wanted) cells[place_of[count]] = cell;
    }
    if (count != expected.size())
      throw Error(path + ":" + std::to_string(line_number) + ": has " + std::to_string(count) +
                  " cells where the header has " + std::to_string(expected.size()) +
                  "; the file was changed by something else: run again");
    take(CsvRow(path, line_number, wanted, cells));
    start = end + 1;
  }
}

}  // namespace gradflow
