#include "output/runs_table.h"

#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files.h"
#include "core/lock.h"
#include "core/numbers.h"
#include "output/csv_table.h"
#include "output/run_folder.h"

namespace gradflow {
namespace {

constexpr auto columns = std::to_array<Column>({
    {"index", "the run's number in the grid, from 0; `--index` takes it"},
    {"id", "name of the run folder"},
    {"status",
     "finished, diverged, interrupted, failed, running, killed: its process is gone, damaged: finished, but a file of "
     "its results is missing or cannot be read, or pending: not begun yet"},
    {"exit_code", "what `gradflow run` ends with: 0, 3 diverged, 75 interrupted, 1 error, 128 + signal of a crash"},
    {"verdict", "learned, learning, stuck, worse or diverged"},
    {"final_loss", "mean of the last min(20, steps) losses, nats"},
    {"path", "the run folder"},
});

std::optional<int> exit_code_of(RunStatus status) {
  switch (status) {
    case RunStatus::finished: return 0;
    case RunStatus::diverged: return 3;
    case RunStatus::interrupted: return 75;
    case RunStatus::failed: return 1;
    case RunStatus::running:
    case RunStatus::killed: break;
  }
  return std::nullopt;
}

std::string text_of(const std::optional<double>& value) { return value ? shortest(*value) : ""; }

std::string line_of(const RunRow& row) {
  return std::to_string(row.index) + ',' + row.id + ',' + row.status + ',' +
         (row.exit_code ? std::to_string(*row.exit_code) : "") + ',' + row.verdict + ',' + text_of(row.final_loss) +
         ',' + row.path + '\n';
}

/// The rows of the file that is there; none when there is no such file or it is not one of these runs.
std::vector<RunRow> rows_there(const std::string& path, const std::vector<RunRow>& runs) {
  std::vector<RunRow> rows;
  try {
    const CsvTable table = read_csv(path, columns);
    if (table.rows() != runs.size()) return {};
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const auto text = [&](std::size_t column) { return std::string(table.text(i, column)); };
      if (text(1) != runs[i].id || text(6) != runs[i].path) return {};
      RunRow row{.index = runs[i].index, .id = text(1), .status = text(2), .verdict = text(4), .path = text(6)};
      if (const auto code = parse_integer(text(3))) row.exit_code = static_cast<int>(*code);
      row.final_loss = table.number(i, 5);
      rows.push_back(std::move(row));
    }
  } catch (const Error&) {
    return {};
  }
  return rows;
}

}  // namespace

std::span<const Column> runs_columns() { return columns; }

RunRow run_row(std::int64_t index, const std::string& id, const std::string& path) {
  RunRow row{.index = index, .id = id, .status = "pending", .path = path};
  const auto status = status_of_folder(path);
  if (!status) return row;
  row.status = name_of(*status);
  row.exit_code = exit_code_of(*status);
  if (!row.done()) return row;
  if (!damaged_result(path).empty()) {
    row.status = "damaged";
    row.exit_code.reset();
    return row;
  }
  try {
    const auto summary = nlohmann::json::parse(read_file(path + "/summary.json"));
    if (summary.at("verdict").is_string()) row.verdict = summary.at("verdict");
    const auto& loss = summary.at("final_loss");
    row.final_loss = loss.is_number() ? loss.get<double>() : std::numeric_limits<double>::quiet_NaN();
  } catch (const std::exception&) {
    // A summary that cannot be read leaves the cells empty: not known.
  }
  return row;
}

RunsTable::RunsTable(const std::string& folder, std::vector<RunRow> rows)
    : path_(folder + "/runs.csv"), rows_(std::move(rows)), known_(rows_.size()) {
  if (path_.find_first_of(",\"\n\r") != std::string::npos)
    throw Error(
        folder +
        ": a comma, quote or line break in the name cannot stand in runs.csv; choose another folder with --out");
}

void RunsTable::set(const RunRow& row) {
  rows_.at(static_cast<std::size_t>(row.index)) = row;
  known_.at(static_cast<std::size_t>(row.index)) = true;
}

void RunsTable::read_folders() {
  for (const RunRow& row : std::vector<RunRow>(rows_)) set(run_row(row.index, row.id, row.path));
}

void RunsTable::write() {
  const FileLock lock = FileLock::when_free(path_ + ".lock");
  const std::vector<RunRow> there = rows_there(path_, rows_);
  std::string text = header_line(columns) + '\n';
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    if (!known_[i]) rows_[i] = there.empty() ? run_row(rows_[i].index, rows_[i].id, rows_[i].path) : there[i];
    text += line_of(rows_[i]);
  }
  write_file_atomically(path_, text);
}

}  // namespace gradflow
