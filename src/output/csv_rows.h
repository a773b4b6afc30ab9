#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "output/table.h"

namespace gradflow {

/// One row of a CSV file while it is read: the cells of the wanted columns, in the order asked for. The texts live only
/// as long as the call.
class CsvRow {
 public:
  CsvRow(const std::string& path, std::size_t line, std::span<const std::string_view> names,
         std::span<const std::string_view> cells)
      : path_(path), line_(line), names_(names), cells_(cells) {}

  std::string_view text(std::size_t i) const { return cells_[i]; }
  bool empty(std::size_t i) const { return cells_[i].empty(); }
  /// nan for an empty cell. Throws Error naming file, line and column when it is no number.
  double number(std::size_t i) const;
  /// Absent for an empty cell; else like `number`.
  std::optional<double> optional_number(std::size_t i) const;
  /// Throws Error naming file, line and column for anything but a whole number.
  std::int64_t integer(std::size_t i) const;

 private:
  [[noreturn]] void refuse(std::size_t i, std::string_view expected) const;

  const std::string& path_;
  std::size_t line_;
  std::span<const std::string_view> names_;
  std::span<const std::string_view> cells_;
};

/// Hands every row of the file to `take`, with the columns `wanted` only: for programs that read thousands of files and
/// keep a few numbers of each (CsvTable keeps every cell). A cell in quotes, as csv_text writes it, is what they hold;
/// a row is one line. A last line without its end is dropped, as by CsvTable.
/// Throws Error when the file cannot be read, when its header is not `expected`, and for a row with another number of
/// cells; std::logic_error when a wanted column is not among the expected ones.
void read_csv_rows(const std::string& path, std::span<const Column> expected, std::span<const std::string_view> wanted,
                   const std::function<void(const CsvRow&)>& take);

}  // namespace gradflow
