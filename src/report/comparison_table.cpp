#include "report/comparison_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/numbers.h"
#include "report/cell_numbers.h"
#include "report/html.h"
#include "report/number_text.h"
#include "report/table_html.h"

namespace gradflow {
namespace {

std::string key_of(const std::optional<double>& value) { return value && !std::isnan(*value) ? shortest(*value) : ""; }

ReportTableCell number_cell(const std::optional<double>& value, int digits = 3) {
  return {.text = number_text(value, digits), .sort_key = key_of(value)};
}

bool all_numbers(const ReportAxis& axis) {
  return std::all_of(axis.values.begin(), axis.values.end(),
                     [](const std::string& value) { return parse_number(value).has_value(); });
}

ReportTableCell count_cell(std::size_t count) {
  return {.text = std::to_string(count), .sort_key = std::to_string(count)};
}

ReportTableCell final_loss_cell(const CellNumbers& numbers) {
  if (numbers.final_losses.empty())
    return {.text = "–", .note = numbers.diverged_at.empty() ? "unfinished" : "stopped"};
  const MeanText text = mean_text(numbers.final_losses);
  return {.text = text.mean,
          .note = text.half_width.empty() ? "" : "± " + text.half_width,
          .sort_key = key_of(mean(numbers.final_losses))};
}

ReportTableCell rate_cell(const DepthProfile& profile) {
  if (profile.verdict == ProfileVerdict::not_finite) return {.text = "not finite"};
  if (!profile.rate.mean) return {.text = "–"};
  ReportTableCell cell{.text = signed_text(*profile.rate.mean), .sort_key = shortest(*profile.rate.mean)};
  if (profile.seeds >= 3 && profile.rate.interval)
    cell.note = "± " + number_text((profile.rate.interval->high - profile.rate.interval->low) / 2, 2);
  return cell;
}

bool tenfold(ProfileVerdict verdict) {
  return verdict == ProfileVerdict::tenfold_falling || verdict == ProfileVerdict::tenfold_rising;
}

/// The layer step that all cells share, as " step 200"; " last step" where they differ.
std::string step_words(const std::vector<CellNumbers>& numbers, std::int64_t CellNumbers::*step,
                       const char* otherwise) {
  std::int64_t shared = 0;
  for (const CellNumbers& cell : numbers) {
    if (cell.*step == 0 || cell.*step == shared) continue;
    if (shared != 0) return otherwise;
    shared = cell.*step;
  }
  return fmt::format("step {}", shared);
}

}  // namespace

ReportTable comparison_table(const Report& report) {
  std::vector<CellNumbers> numbers;
  bool gradient = false, variance = false;
  for (const ReportCell& cell : report.cells) {
    numbers.push_back(numbers_of(report, cell));
    const DepthProfile& profile = numbers.back().gradient;
    gradient = gradient || profile.seeds + profile.not_finite > 0 || numbers.back().first_step_ratio;
    variance = variance || numbers.back().last_variance;
  }

  // The same where every run stopped at its first recorded step: one column then.
  const std::string first_step = step_words(numbers, &CellNumbers::first_step, "first step"),
                    last_step = step_words(numbers, &CellNumbers::last_step, "last step");

  ReportTable table;
  table.columns.push_back({report.group_axis.name});
  if (report.panel_axis) table.columns.push_back({report.panel_axis->name, all_numbers(*report.panel_axis)});
  for (const ReportAxis& axis : report.axes) table.columns.push_back({axis.name, all_numbers(axis)});
  table.columns.push_back({"verdict"});
  table.columns.push_back({"final loss", true});
  if (gradient) {
    table.columns.push_back({"gradient first/last block, " + first_step, true});
    if (last_step != first_step) table.columns.push_back({"gradient first/last block, " + last_step, true});
    table.columns.push_back({"rate a block", true});
    table.columns.push_back({"profile"});
  }
  if (variance) table.columns.push_back({"variance, last block", true});
  table.columns.push_back({"spikes", true});
  table.columns.push_back({"steps/s", true});

  for (std::size_t i = 0; i < report.cells.size(); ++i) {
    const ReportCell& cell = report.cells[i];
    const CellNumbers& own = numbers[i];
    const ReportGroup& group = report.groups[cell.group];
    std::vector<ReportTableCell> row = {
        {.text = group.label, .sort_key = fmt::format("{:05}", cell.group), .group = &group}};
    const auto place = [&](const ReportAxis& axis, std::size_t value) {
      const auto number = parse_number(axis.values[value]);
      row.push_back(
          {.text = axis.values[value], .sort_key = number ? axis.values[value] : fmt::format("{:05}", value)});
    };
    if (report.panel_axis) place(*report.panel_axis, cell.panel);
    for (std::size_t axis = 0; axis < report.axes.size(); ++axis) place(report.axes[axis], cell.choice[axis]);
    const Outcome outcome = own.majority().value_or(report.runs[cell.runs.front()].outcome);
    row.push_back(
        {.text = own.counted_outcomes(), .sort_key = std::to_string(static_cast<int>(outcome)), .bad = own.is_bad()});
    row.push_back(final_loss_cell(own));
    if (gradient) {
      row.push_back(number_cell(own.first_step_ratio));
      if (last_step != first_step) row.push_back(number_cell(own.last_step_ratio));
      row.push_back(rate_cell(own.gradient));
      const std::string word = own.gradient.seeds + own.gradient.not_finite > 0
                                   ? std::string(name_of(own.gradient.verdict, Flow::gradient))
                                   : "–";
      row.push_back({.text = word, .sort_key = word, .bad = own.is_bad() && tenfold(own.gradient.verdict)});
    }
    if (variance) row.push_back(number_cell(own.last_variance));
    row.push_back(count_cell(own.spikes));
    row.push_back(number_cell(mean(own.steps_per_second)));
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string sortable_html(const ReportTable& table, const std::string& label) {
  std::string html = fmt::format(R"(<div class="scroll" tabindex="0" role="region" aria-label="{}"><table><thead><tr>)",
                                 escaped_html(label));
  for (const ReportTableColumn& column : table.columns)
    html += fmt::format(R"(<th scope="col"{}><button>{}</button></th>)", column.number ? R"( class="n")" : "",
                        escaped_html(column.heading));
  html += "</tr></thead><tbody>\n";
  for (const std::vector<ReportTableCell>& row : table.rows) {
    html += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) {
      const ReportTableCell& cell = row[i];
      const char* element = i == 0 ? "th" : "td";
      const std::string classes = fmt::format("{}{}", table.columns[i].number ? "n" : "", cell.bad ? " bad" : "");
      html += fmt::format(R"(<{}{}{} data-v="{}">{}{}</{}>)", element, i == 0 ? R"( scope="row")" : "",
                          classes.empty() ? "" : fmt::format(R"( class="{}")", classes), escaped_html(cell.sort_key),
                          cell.group ? key_html(*cell.group) : escaped_html(cell.text),
                          cell.note.empty() ? "" : fmt::format(" <small>{}</small>", escaped_html(cell.note)), element);
    }
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>";
}

std::string table_markdown(const ReportTable& table) {
  std::string text = "|", rule = "|";
  for (const ReportTableColumn& column : table.columns) {
    text += ' ' + escaped_markdown(column.heading) + " |";
    rule += column.number ? " ---: |" : " --- |";
  }
  text += '\n' + rule + '\n';
  for (const std::vector<ReportTableCell>& row : table.rows) {
    text += '|';
    for (const ReportTableCell& cell : row)
      text += ' ' + escaped_markdown(cell.text) + (cell.note.empty() ? "" : ' ' + escaped_markdown(cell.note)) + " |";
    text += '\n';
  }
  return text;
}

}  // namespace gradflow
