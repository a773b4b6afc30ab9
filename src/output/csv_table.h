#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "output/table.h"

namespace gradflow {

/// A CSV file of this program, read: columns by name, cells as text or numbers. Rows count from 0.
class CsvTable {
 public:
  /// From the text of a file; `path` is for messages. A last line without its end (the writer was killed, or is just
  /// writing) is dropped. Throws Error "PATH:LINE: …" for a row with another number of cells than the header.
  CsvTable(std::string path, std::string text);

  const std::string& path() const { return path_; }
  const std::vector<std::string>& columns() const { return columns_; }
  std::size_t rows() const { return cells_.size() / columns_.size(); }

  /// The column's position. Throws Error naming the file and its columns when there is none of this name.
  std::size_t column(std::string_view name) const;
  /// The cell's text; empty for "not measured". Lives as long as the table.
  std::string_view text(std::size_t row, std::size_t column) const;
  /// The cell's number, nan and ±inf included; absent for an empty cell. Throws Error naming file, line and column when
  /// it is no number.
  std::optional<double> number(std::size_t row, std::size_t column) const;
  /// The cell's whole number. Throws Error naming file, line and column for anything else, the empty cell included.
  std::int64_t integer(std::size_t row, std::size_t column) const;

 private:
  struct Place {
    std::size_t start = 0;
    std::size_t size = 0;
  };
  std::string cell_place(std::size_t row, std::size_t column) const;

  std::string path_;
  std::string text_;
  std::vector<std::string> columns_;
  std::vector<Place> cells_;  // row by row
};

/// Reads the file. Throws Error naming it when it cannot be read or has no header.
CsvTable read_csv(const std::string& path);

/// The same, and the header must be exactly these columns; else throws Error naming the first that differs.
CsvTable read_csv(const std::string& path, std::span<const Column> expected);

}  // namespace gradflow
