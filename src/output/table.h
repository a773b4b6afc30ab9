#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/files.h"

namespace gradflow {

/// A cell of a CSV file: empty ("not measured"), a whole number, a number, or a word.
using Cell = std::variant<std::monostate, std::int64_t, double, std::string>;

/// A cell that is empty when there is nothing to say.
inline Cell cell(const std::optional<double>& value) { return value ? Cell{*value} : Cell{}; }

/// The columns of one CSV file: name, and what stands in it (for the README and --help).
struct Column {
  std::string_view name;
  std::string_view meaning;
};

/// The fixed columns of each file of a run folder (README). Declared here only.
std::span<const Column> steps_columns();
std::span<const Column> layers_columns();
std::span<const Column> tensors_columns();
std::span<const Column> spikes_columns();
std::span<const Column> timing_columns();
std::span<const Column> quantities_columns();
/// Of the files that `probe` writes: probe.csv and means.csv.
std::span<const Column> probe_columns();
std::span<const Column> probe_means_columns();

/// The columns as a Markdown table of name and meaning.
std::string column_table(std::span<const Column> columns);

/// The header line, without its end.
std::string header_line(std::span<const Column> columns);

/// What is wrong with a header line, given without its end, of a file of these columns: "column 3 is loss where this
/// version has tokens; …"; empty when nothing is.
std::string header_fault(std::string_view header, std::span<const Column> expected);

/// A text as a cell of a CSV file: in quotes where it holds a comma, a quote or a line break (RFC 4180). Only tables
/// over many runs, which hold paths and names, need it.
std::string csv_text(std::string_view text);
/// The cell as it stands in a CSV file; a text as by csv_text.
std::string csv_text(const Cell& cell);

/// A CSV file that only grows: one header, whole lines, flushed by `flush()` (the owner calls it at least once a
/// second). Numbers are the shortest decimals that read back to the same bits. A row has exactly one cell for each
/// column, and a word has no comma, quote or line break; anything else is a programming error and throws
/// std::logic_error before anything is written.
class CsvFile {
 public:
  /// Creates the file with its header, already flushed. Throws Error naming the file when it cannot be written.
  CsvFile(const std::string& path, std::span<const Column> columns);
  /// Goes on in a file that exists, behind its first `length` bytes. Throws Error naming the file when it is shorter or
  /// has other columns.
  CsvFile(const std::string& path, std::span<const Column> columns, std::uint64_t length);
  /// Throws Error naming the file where `flush` would.
  void write(std::span<const Cell> row);
  /// Hands everything written so far to the operating system. Throws Error naming the file.
  void flush();
  /// Flushes, and waits until the disk holds it. Throws Error naming the file.
  void sync();
  /// Writes text that `line_of` made.
  void append(std::string_view text) { file_.append(text); }
  /// What `write` would write, with the end of the line.
  const std::string& line_of(std::span<const Cell> row);
  /// Bytes, with what is not yet flushed.
  std::uint64_t length() const { return file_.length(); }
  const std::string& path() const { return file_.path(); }

 private:
  AppendFile file_;
  std::size_t columns_;
  std::string line_;  // reused, so that a row costs no allocation
};

}  // namespace gradflow
