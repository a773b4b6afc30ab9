#include "output/table.h"

#include <fstream>
#include <stdexcept>

#include "core/error.h"
#include "core/numbers.h"
#include "output/run_folder.h"

namespace gradflow {
namespace {

struct CellWriter {
  std::string& line;

  void operator()(std::monostate) const {}
  void operator()(std::int64_t value) const { append_shortest(line, value); }
  void operator()(double value) const { append_shortest(line, value); }
  void operator()(const std::string& word) const {
    if (word.find_first_of(",\"\r\n") != std::string::npos)
      throw std::logic_error("a word of a CSV file must not hold a comma, quote or line break: " + word);
    line += word;
  }
};

/// The path of a file that begins with this header.
const std::string& with_columns(const std::string& path, std::span<const Column> columns) {
  std::ifstream file(path, std::ios::binary);
  std::string header;
  if (!std::getline(file, header) || header != header_line(columns))
    throw OfOtherVersion(
        path +
        ":1: has other columns than this version writes; go on with the version that wrote it, or start "
        "again (remove the folder, or run --overwrite)");
  return path;
}

}  // namespace

std::string column_table(std::span<const Column> columns) {
  std::string text = "| column | meaning |\n| --- | --- |\n";
  for (const Column& column : columns)
    text += "| `" + std::string(column.name) + "` | " + std::string(column.meaning) + " |\n";
  return text;
}

std::string header_line(std::span<const Column> columns) {
  std::string line;
  for (const Column& column : columns) {
    if (!line.empty()) line += ',';
    line += column.name;
  }
  return line;
}

std::string header_fault(std::string_view header, std::span<const Column> expected) {
  bool there_more = true;
  for (std::size_t i = 0; there_more || i < expected.size(); ++i) {
    const std::size_t comma = header.find(',');
    const std::string_view there = there_more ? header.substr(0, comma) : "nothing";
    const std::string_view here = i < expected.size() ? expected[i].name : "nothing";
    if (there != here)
      return "column " + std::to_string(i + 1) + " is " + std::string(there) + " where this version has " +
             std::string(here) + "; use the version that wrote it, or run again";
    there_more = there_more && comma != std::string_view::npos;
    if (there_more) header.remove_prefix(comma + 1);
  }
  return "";
}

std::string csv_text(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

std::string csv_text(const Cell& cell) {
  if (const auto* word = std::get_if<std::string>(&cell)) return csv_text(std::string_view(*word));
  std::string text;
  std::visit(CellWriter{text}, cell);
  return text;
}

CsvFile::CsvFile(const std::string& path, std::span<const Column> columns) : file_(path), columns_(columns.size()) {
  file_.append(header_line(columns) + '\n');
  file_.flush();
}

CsvFile::CsvFile(const std::string& path, std::span<const Column> columns, std::uint64_t length)
    : file_(with_columns(path, columns), length), columns_(columns.size()) {}

void CsvFile::write(std::span<const Cell> row) { file_.append(line_of(row)); }

const std::string& CsvFile::line_of(std::span<const Cell> row) {
  if (row.size() != columns_)
    throw std::logic_error(path() + ": a row of " + std::to_string(row.size()) + " cells for " +
                           std::to_string(columns_) + " columns");
  line_.clear();
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (i > 0) line_ += ',';
    std::visit(CellWriter{line_}, row[i]);
  }
  line_ += '\n';
  return line_;
}

void CsvFile::flush() { file_.flush(); }
void CsvFile::sync() { file_.sync(); }

}  // namespace gradflow
