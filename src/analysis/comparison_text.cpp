#include "analysis/comparison_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "analysis/find_runs.h"
#include "core/numbers.h"
#include "output/paragraph.h"
#include "output/text_table.h"

namespace gradflow {
namespace {

constexpr std::string_view nothing = "–";

std::string number(const std::optional<double>& value, int digits) {
  return value ? significant(*value, digits) : std::string(nothing);
}

/// "1.715 ± 0.03", "1.715" without an interval, "1.715 (2 of 3)" where not every finished run has the number.
std::string with_interval(const OverSeeds& value, const GroupResult& result) {
  std::string text = number(value.mean, 4);
  if (value.interval) text += " ± " + significant(0.5 * (value.interval->high - value.interval->low), 2);
  if (value.mean && value.seeds < result.finished()) text += fmt::format(" ({} of {})", value.seeds, result.finished());
  return text;
}

std::string verdicts(const GroupResult& result) {
  std::string text;
  const auto add = [&](std::int64_t count, std::string_view word) {
    if (count > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, word);
  };
  for (std::size_t i = 0; i < all_verdicts.size(); ++i) add(result.verdicts[i], name_of(all_verdicts[i]));
  add(result.without_verdict, "finished");
  add(result.unfinished, "unfinished");
  return text;
}

/// A rate over depth, or that the blocks overflowed.
std::string rate(const OverSeeds& value, ProfileVerdict verdict, const GroupResult& result) {
  return verdict == ProfileVerdict::not_finite ? std::string(name_of(verdict, Flow::gradient))
                                               : with_interval(value, result);
}

/// A column for people.
struct TextColumn {
  std::string_view heading;
  std::string (*text)(const GroupResult&);
};

constexpr auto text_columns = std::to_array<TextColumn>({
    {"verdict", verdicts},
    {"final loss", [](const GroupResult& r) { return with_interval(r.final_loss, r); }},
    {"spikes", [](const GroupResult& r) { return fmt::format("{}", r.loss_spikes + r.grad_norm_spikes); }},
    {"ratio, start", [](const GroupResult& r) { return number(r.gradient_ratio_first_step.mean, 3); }},
    {"ratio, end", [](const GroupResult& r) { return number(r.gradient_ratio.mean, 3); }},
    {"rate a block", [](const GroupResult& r) { return rate(r.gradient_rate, r.gradient_profile, r); }},
    {"gradient",
     [](const GroupResult& r) {
       return std::string(r.gradient_rate.mean || r.gradient_profile == ProfileVerdict::not_finite
                              ? name_of(r.gradient_profile, Flow::gradient)
                              : nothing);
     }},
    {"variance slope", [](const GroupResult& r) { return rate(r.variance_rate, r.variance_profile, r); }},
    {"steps/s", [](const GroupResult& r) { return number(r.steps_per_second.mean, 3); }},
});

constexpr std::string_view legend =
    "Final loss: mean of the last 20 losses, over seeds with 95 % Student interval (three seeds or more). Ratio: "
    "‖∂L/∂x‖ after the first block divided by that after the last, at the first and last step (geometric mean). Rate: "
    "slope of its logarithm for each block away from the output. Variance slope: of the logarithm of the stream's "
    "variance, for each block away from the input. Spikes: episodes of all runs.";

struct Cells {
  std::vector<std::string> headings;
  std::vector<std::vector<std::string>> rows;
};

Cells cells_of(const Comparison& comparison) {
  Cells cells;
  for (const StudyKey& key : comparison.study.keys) cells.headings.push_back(key.label);
  for (const StudyGroup& group : comparison.study.groups) cells.rows.push_back(group.words);
  for (const TextColumn& column : text_columns) {
    std::vector<std::string> texts;
    for (const GroupResult& result : comparison.results) texts.push_back(column.text(result));
    if (std::all_of(texts.begin(), texts.end(), [](const std::string& text) { return text == nothing; })) continue;
    cells.headings.emplace_back(column.heading);
    for (std::size_t i = 0; i < texts.size(); ++i) cells.rows[i].push_back(std::move(texts[i]));
  }
  return cells;
}

std::string markdown_row(const std::vector<std::string>& cells) {
  std::string row = "|";
  for (const std::string& cell : cells) {
    row += ' ';
    for (const char c : cell) row += c == '|' ? std::string("\\|") : std::string(1, c);
    row += " |";
  }
  return row + '\n';
}

Json json_of(const Cell& cell) {
  if (const auto* whole = std::get_if<std::int64_t>(&cell)) return *whole;
  if (const auto* number = std::get_if<double>(&cell)) return std::isfinite(*number) ? Json(*number) : Json();
  if (const auto* word = std::get_if<std::string>(&cell)) return *word;
  return nullptr;
}

Json json_of(const RecordedRun& run) {
  const std::optional<Verdict> verdict = run.verdict();
  return {{"path", run.path},
          {"seed", run.config.seed},
          {"status", name_of(run.status)},
          {"verdict", verdict ? Json(name_of(*verdict)) : Json()},
          {"final_loss", run.finished() ? json_of(cell(run.final_loss())) : Json()}};
}

}  // namespace

std::string comparison_text(const Comparison& comparison, std::size_t width) {
  Cells cells = cells_of(comparison);
  const auto table = [&] {
    TextTable result(cells.headings);
    for (const auto& row : cells.rows) result.add(row);
    return result;
  };
  const std::size_t keys = comparison.study.keys.size();
  std::string text;
  if (table().width_of_first(keys) <= width / 2) {
    text = table().text_within(width, keys);
  } else {
    // Too many keys to repeat in each part: a number stands for them.
    cells.headings.insert(cells.headings.begin(), "row");
    for (std::size_t i = 0; i < cells.rows.size(); ++i)
      cells.rows[i].insert(cells.rows[i].begin(), std::to_string(i + 1));
    text = table().text_within(width, 1);
  }
  constexpr std::size_t widest_paragraph = 100;
  return text + '\n' + paragraph("", legend, std::min(width, widest_paragraph));
}

std::string comparison_markdown(const Comparison& comparison) {
  const Cells cells = cells_of(comparison);
  std::string text = markdown_row(cells.headings);
  text += markdown_row(std::vector<std::string>(cells.headings.size(), "---"));
  for (const auto& row : cells.rows) text += markdown_row(row);
  return text;
}

std::string comparison_csv(const Comparison& comparison) {
  std::string text;
  const auto add_row = [&](auto key_cell, auto cell) {
    for (std::size_t k = 0; k < comparison.study.keys.size(); ++k) text += key_cell(k) + ',';
    for (const ComparisonColumn& column : comparison_columns()) text += cell(column) + ',';
    text.back() = '\n';
  };
  add_row([&](std::size_t k) { return std::string(comparison.study.keys[k].key); },
          [](const ComparisonColumn& column) { return std::string(column.name); });
  for (std::size_t i = 0; i < comparison.results.size(); ++i)
    add_row([&](std::size_t k) { return csv_text(std::string_view(comparison.study.groups[i].words[k])); },
            [&](const ComparisonColumn& column) { return csv_text(column.cell(comparison.results[i])); });
  return text;
}

Json comparison_json(const Comparison& comparison, std::span<const LeftOut> left_out) {
  Json keys = Json::array(), groups = Json::array(), unused = Json::array();
  for (const StudyKey& key : comparison.study.keys) keys.push_back(key.key);
  for (std::size_t i = 0; i < comparison.results.size(); ++i) {
    const StudyGroup& group = comparison.study.groups[i];
    Json values = Json::object(), runs = Json::array(), result = Json::object();
    for (std::size_t k = 0; k < group.values.size(); ++k)
      values[std::string(comparison.study.keys[k].key)] = group.values[k];
    for (const std::size_t place : group.runs) runs.push_back(json_of(comparison.study.runs[place]));
    for (const ComparisonColumn& column : comparison_columns())
      result[std::string(column.name)] = json_of(column.cell(comparison.results[i]));
    groups.push_back({{"values", values}, {"runs", runs}, {"result", result}});
  }
  for (const LeftOut& one : left_out) unused.push_back({{"path", one.path}, {"reason", one.reason}});
  return {{"keys", keys}, {"groups", groups}, {"left_out", unused}};
}

std::string comparison_of_folders(std::span<const std::string> folders, std::size_t width) {
  std::vector<RecordedRun> runs;
  for (const std::string& folder : folders) {
    std::variant<RecordedRun, LeftOut> run = read_run(folder);
    if (auto* recorded = std::get_if<RecordedRun>(&run)) runs.push_back(std::move(*recorded));
  }
  return runs.empty() ? std::string() : comparison_text(compare(make_study(std::move(runs))), width);
}

}  // namespace gradflow
