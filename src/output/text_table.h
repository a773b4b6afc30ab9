#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace gradflow {

/// The columns that a UTF-8 text takes on a terminal: one a code point (enough for Latin, Greek and mathematics).
std::size_t display_width(std::string_view text);

/// A table for the terminal. A column whose cells are all numbers (what follows the number, such as a unit or ±, counts
/// as part of it; empty cells and "–" say nothing) is set flush right, every other flush left.
class TextTable {
 public:
  /// Without headings the table has only rows, each of `columns` cells.
  explicit TextTable(std::size_t columns) : columns_(columns) {}
  explicit TextTable(std::vector<std::string> headings) : columns_(headings.size()), headings_(std::move(headings)) {}

  /// Throws std::logic_error unless there is one cell for each column.
  void add(std::vector<std::string> row);

  /// The lines, each ended, none with blanks at its end. `indent` blanks precede each.
  std::string text(std::size_t indent = 0) const;

  /// The same in at most `width` columns where that can be done: a table that is too wide is set as several, one below
  /// the other with an empty line between, each with the first `repeated` columns again.
  std::string text_within(std::size_t width, std::size_t repeated) const;
  /// Columns that the first `columns` columns of the table take on a terminal.
  std::size_t width_of_first(std::size_t columns) const;

 private:
  /// How a column is set.
  struct Setting {
    std::size_t width = 0;
    bool flush_right = false;
  };
  std::vector<Setting> settings() const;
  std::string text_of(const std::vector<std::size_t>& columns, const std::vector<Setting>& settings,
                      std::size_t indent) const;

  std::size_t columns_;
  std::vector<std::string> headings_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace gradflow
