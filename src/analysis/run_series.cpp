#include "analysis/run_series.h"

#include <fmt/format.h>

#include <array>
#include <initializer_list>
#include <string>

#include "core/error.h"
#include "core/files.h"
#include "core/numbers.h"
#include "output/csv_rows.h"
#include "output/csv_table.h"

namespace gradflow {
namespace {

using Names = std::vector<std::string_view>;

Names with_front(std::initializer_list<std::string_view> front, std::span<const std::string_view> rest) {
  Names names(front);
  names.insert(names.end(), rest.begin(), rest.end());
  return names;
}

StepSeries read_step_table(const std::string& path, std::span<const Column> expected,
                           std::span<const std::string_view> columns) {
  StepSeries series;
  series.columns.resize(columns.size());
  read_csv_rows(path, expected, with_front({"step"}, columns), [&](const CsvRow& row) {
    series.steps.push_back(row.integer(0));
    for (std::size_t i = 0; i < columns.size(); ++i) series.columns[i].push_back(row.number(i + 1));
  });
  return series;
}

template <class Word>
Word word_of(const CsvTable& table, std::size_t row, std::string_view column, std::initializer_list<Word> all) {
  const std::string_view text = table.text(row, table.column(column));
  for (const Word word : all)
    if (name_of(word) == text) return word;
  throw Error(
      fmt::format("{}:{}: {}: \"{}\" is no word of this column; the file was changed by something else: run again",
                  table.path(), row + 2, column, text));
}

double number(const CsvTable& table, std::size_t row, std::string_view column) {
  return table.number(row, table.column(column)).value_or(std::numeric_limits<double>::quiet_NaN());
}

}  // namespace

StepSeries read_steps(const RecordedRun& run, std::span<const std::string_view> columns) {
  return read_step_table(run.file("steps.csv"), steps_columns(), columns);
}

StepSeries read_timing(const RecordedRun& run, std::span<const std::string_view> columns) {
  return read_step_table(run.file("timing.csv"), timing_columns(), columns);
}

LayerSeries read_layers(const RecordedRun& run, std::span<const std::string_view> columns) {
  constexpr std::size_t first_column = 3;
  const std::string path = run.file("layers.csv");
  LayerSeries series;
  series.columns.resize(columns.size());
  std::size_t row_of_step = 0;
  const auto refuse = [&](std::int64_t step) {
    throw Error(
        fmt::format("{}: step {}: its sub-layers are not those of step {}; the file was changed by something "
                    "else: run again",
                    path, step, series.steps.front()));
  };
  read_csv_rows(path, layers_columns(), with_front({"step", "layer", "sublayer"}, columns), [&](const CsvRow& row) {
    const std::int64_t step = row.integer(0);
    if (series.steps.empty() || step != series.steps.back()) {
      if (series.steps.size() > 0 && row_of_step != series.rows.size()) refuse(series.steps.back());
      series.steps.push_back(step);
      row_of_step = 0;
    }
    const std::int64_t layer = row.integer(1);
    if (series.steps.size() == 1) {
      series.rows.push_back({layer, std::string(row.text(2))});
    } else if (row_of_step >= series.rows.size() || series.rows[row_of_step].layer != layer ||
               series.rows[row_of_step].sublayer != row.text(2)) {
      refuse(step);
    }
    ++row_of_step;
    for (std::size_t i = 0; i < columns.size(); ++i) series.columns[i].push_back(row.number(first_column + i));
  });
  if (!series.steps.empty() && row_of_step != series.rows.size()) {
    series.steps.pop_back();
    for (std::vector<double>& column : series.columns) column.resize(series.steps.size() * series.rows.size());
  }
  return series;
}

std::vector<SpikeRow> read_spikes(const RecordedRun& run) {
  const CsvTable table = read_csv(run.file("spikes.csv"), spikes_columns());
  const auto integer = [&](std::size_t row, std::string_view column) {
    return table.integer(row, table.column(column));
  };
  std::vector<SpikeRow> rows;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    SpikeRow row{.series = word_of(table, i, "series", {SpikeSeries::loss, SpikeSeries::grad_norm}),
                 .kind = word_of(table, i, "kind", {EpisodeKind::spike, EpisodeKind::nonfinite, EpisodeKind::shift}),
                 .start_step = integer(i, "start_step"),
                 .peak_step = integer(i, "peak_step"),
                 .end_step = integer(i, "end_step"),
                 .level_before = table.number(i, table.column("level_before")),
                 .peak = number(table, i, "peak"),
                 .score = number(table, i, "score"),
                 .recovered = integer(i, "recovered") != 0};
    if (!table.text(i, table.column("first_step")).empty())
      row.first = SpikeRow::First{
          .step = integer(i, "first_step"),
          .name = {integer(i, "first_layer"), std::string(table.text(i, table.column("first_sublayer")))},
          .quantity = word_of(table, i, "first_quantity", {LayerQuantity::grad_norm, LayerQuantity::update_ratio}),
          .score = number(table, i, "first_score")};
    rows.push_back(std::move(row));
  }
  return rows;
}

std::optional<double> steps_per_second(const RecordedRun& run) {
  // Some rows of numbers, longer than any header.
  constexpr std::size_t enough = 1024;
  struct Row {
    std::int64_t step = 0;
    double seconds = 0;
  };
  const auto row_in = [](std::string_view line) -> std::optional<Row> {
    const std::size_t comma = line.find(',');
    if (comma == std::string_view::npos) return std::nullopt;
    const auto step = parse_integer(line.substr(0, comma));
    line.remove_prefix(comma + 1);
    const auto seconds = parse_number(line.substr(0, line.find(',')));
    if (!step || !seconds) return std::nullopt;
    return Row{*step, *seconds};
  };
  const std::string path = run.file("timing.csv");
  const std::string beginning = read_beginning(path, enough);
  const std::size_t header_end = beginning.find('\n');
  const std::size_t first_end = header_end == std::string::npos ? header_end : beginning.find('\n', header_end + 1);
  if (first_end == std::string::npos) return std::nullopt;
  std::string ending = read_ending(path, enough);
  ending.erase(ending.find_last_of('\n'));  // there is one: the file has two lines
  const auto first = row_in(std::string_view(beginning).substr(header_end + 1, first_end - header_end - 1));
  const auto last = row_in(std::string_view(ending).substr(ending.find_last_of('\n') + 1));
  if (!first || !last)
    throw Error(path + ": its first or last row has no numbers; the file was changed by something else: run again");
  if (last->step <= first->step || !(last->seconds > first->seconds)) return std::nullopt;
  return static_cast<double>(last->step - first->step) / (last->seconds - first->seconds);
}

}  // namespace gradflow
