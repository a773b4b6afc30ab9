#include "report/matrix.h"

#include <fmt/format.h>

#include <array>

#include "report/cell_numbers.h"
#include "report/html.h"
#include "report/number_text.h"
#include "report/table_html.h"

namespace gradflow {
namespace {

using Setting = std::vector<std::size_t>;

constexpr std::array<std::string_view, outcome_count> shapes = {
    R"(<circle cx="6" cy="6" r="5" fill="currentColor"/>)",
    R"(<circle cx="6" cy="6" r="4.25" fill="none" stroke="currentColor" stroke-width="1.5"/>)"
    R"(<path d="M6 1.75a4.25 4.25 0 0 1 0 8.5z" fill="currentColor"/>)",
    R"(<circle cx="6" cy="6" r="4.25" fill="none" stroke="currentColor" stroke-width="1.5"/>)",
    R"(<path d="M1 2h10L6 11z" fill="currentColor"/>)",
    R"(<path d="M1.5 1.5l9 9m0-9l-9 9" stroke="currentColor" stroke-width="2.2"/>)",
    R"(<path d="M1.5 6h9" stroke="currentColor" stroke-width="2.2"/>)",
    R"(<path d="M0.5 6h2m2.5 0h2m2.5 0h2" stroke="currentColor" stroke-width="2.2"/>)",
};
/// The same marks as characters, for Markdown.
constexpr std::array<std::string_view, outcome_count> characters = {"●", "◐", "○", "▼", "✕", "–", "…"};

/// What stands below the marks: the final loss, or where runs stopped.
std::string result_words(const Report& report, const ReportCell& cell, const CellNumbers& numbers) {
  std::string words;
  if (!numbers.final_losses.empty()) {
    words = mean_text(numbers.final_losses).text();
    const std::size_t others = numbers.seeds - numbers.final_losses.size();
    if (others > 0) words += fmt::format(" ({})", counted(numbers.final_losses.size(), "seed"));
  }
  if (!numbers.diverged_at.empty()) {
    const std::int64_t from = numbers.diverged_at.front(), to = numbers.diverged_at.back();
    words += fmt::format("{}{} {}{}", words.empty() ? "" : "; ", characters[4], "step ", from);
    if (to != from) words += fmt::format("–{}", to);
    if (numbers.final_losses.empty()) words = words.substr(characters[4].size() + 1);
  }
  if (words.empty() && !cell.runs.empty())
    words = fmt::format("at step {}", report.runs[cell.runs.front()].last_step());
  return words;
}

std::string tooltip(const ReportRun& run) {
  std::string text = fmt::format("seed {}: {}", run.seed, name_of(run.outcome));
  if (run.outcome == Outcome::diverged) return text + fmt::format(" at step {}", run.last_step());
  if (run.outcome == Outcome::unfinished)
    return text + fmt::format(" ({}, step {})", name_of(run.status), run.last_step());
  return text + ", final loss " + number_text(run.final_loss);
}

std::string cell_html(const Report& report, const ReportCell* cell) {
  if (cell == nullptr) return R"(<td><small>not run</small></td>)";
  const CellNumbers numbers = numbers_of(report, *cell);
  std::string marks;
  for (const std::size_t run : cell->runs) marks += outcome_mark(report.runs[run].outcome, tooltip(report.runs[run]));
  return fmt::format(R"(<td{}><span class="marks">{}</span> <b>{}</b><br><small>{}</small></td>)",
                     numbers.is_bad() ? R"( class="bad")" : "", marks, numbers.outcome_words(),
                     escaped_html(result_words(report, *cell, numbers)));
}

/// Whether the further axes become columns.
bool settings_as_columns(const Report& report) { return report.panels.size() * report.choices().size() <= 4; }

std::string legend(const Report& report) {
  std::array<bool, outcome_count> used = {true, true, true, true, true, false, false};
  for (const ReportRun& run : report.runs) used[static_cast<std::size_t>(run.outcome)] = true;
  std::string html;
  for (std::size_t i = 0; i < outcome_count; ++i)
    if (used[i])
      html += fmt::format(R"(<span class="nowrap">{}{}&ensp;</span> )", outcome_mark(static_cast<Outcome>(i), ""),
                          name_of(static_cast<Outcome>(i)));
  return html;
}

}  // namespace

std::string outcome_mark(Outcome outcome, const std::string& tooltip) {
  const std::string name = escaped_html(tooltip.empty() ? std::string(name_of(outcome)) : tooltip);
  return fmt::format(R"(<svg viewBox="0 0 12 12" role="img" aria-label="{0}"><title>{0}</title>{1}</svg>)", name,
                     shapes[static_cast<std::size_t>(outcome)]);
}

bool matrix_is_wide(const Report& report) {
  return (settings_as_columns(report) ? report.panels.size() * report.choices().size() : report.panels.size()) > 4;
}

std::string matrix_html(const Report& report) {
  const std::vector<Setting> choices = report.choices();
  const bool as_columns = settings_as_columns(report), settings = !report.axes.empty();
  std::string head, rows;
  for (const ReportPanel& panel : report.panels)
    head += fmt::format(R"(<th scope="col"{}>{}</th>)",
                        as_columns && settings ? fmt::format(R"( colspan="{}")", choices.size()) : "",
                        escaped_html(panel.label));
  head = fmt::format("<tr><th></th>{}{}</tr>", settings && !as_columns ? "<th></th>" : "", head);
  if (as_columns && settings) {
    // One axis is named once, at the left.
    const bool one = report.axes.size() == 1;
    head += fmt::format(R"(<tr><th class="note">{}</th>)", one ? escaped_html(report.axes[0].name) : "");
    for (std::size_t p = 0; p < report.panels.size(); ++p)
      for (const Setting& choice : choices)
        head += fmt::format(R"(<th scope="col" class="note">{}</th>)",
                            escaped_html(one ? report.axes[0].values[choice[0]] : report.choice_label(choice)));
    head += "</tr>";
  }
  for (std::size_t g = 0; g < report.groups.size(); ++g) {
    const std::string name = key_html(report.groups[g]);
    if (as_columns) {
      rows += fmt::format(R"(<tr><th scope="row">{}</th>)", name);
      for (std::size_t p = 0; p < report.panels.size(); ++p)
        for (const Setting& choice : choices) rows += cell_html(report, report.cell(g, p, choice));
      rows += "</tr>";
      continue;
    }
    for (std::size_t k = 0; k < choices.size(); ++k) {
      rows += "<tr>";
      if (k == 0) rows += fmt::format(R"(<th scope="rowgroup" rowspan="{}">{}</th>)", choices.size(), name);
      rows += fmt::format(R"(<th scope="row" class="note">{}</th>)", escaped_html(report.choice_label(choices[k])));
      for (std::size_t p = 0; p < report.panels.size(); ++p) rows += cell_html(report, report.cell(g, p, choices[k]));
      rows += "</tr>";
    }
  }
  const bool dense = !as_columns && report.groups.size() * choices.size() > 8;
  const char* density = dense ? " dense" : as_columns && report.panels.size() * choices.size() > 2 ? " many" : "";
  return fmt::format(
      R"(<div class="scroll"><table class="matrix{}" aria-describedby="marks">)"
      "\n<thead>{}</thead><tbody>{}</tbody></table></div>\n"
      R"(<p class="note" id="marks">One mark a seed: <span class="marks">{}</span><br>Below it: final loss (mean of the )"
      R"(last 20), mean ± 95 % interval from 3 seeds on, or the step of divergence. Yellow: a seed no better than the )"
      "unigram entropy.</p>",
      density, head, rows, legend(report));
}

std::string matrix_markdown(const Report& report) {
  std::string text = "| " + escaped_markdown(report.group_axis.name);
  for (const ReportAxis& axis : report.axes) text += " | " + escaped_markdown(axis.name);
  for (const ReportPanel& panel : report.panels) text += " | " + escaped_markdown(panel.label);
  text += " |\n|";
  for (std::size_t i = 0; i < 1 + report.axes.size() + report.panels.size(); ++i) text += " --- |";
  text += '\n';
  for (std::size_t g = 0; g < report.groups.size(); ++g)
    for (const Setting& choice : report.choices()) {
      text += "| " + escaped_markdown(report.groups[g].label);
      for (std::size_t axis = 0; axis < choice.size(); ++axis)
        text += " | " + escaped_markdown(report.axes[axis].values[choice[axis]]);
      for (std::size_t p = 0; p < report.panels.size(); ++p) {
        const ReportCell* cell = report.cell(g, p, choice);
        if (cell == nullptr) {
          text += " | not run";
          continue;
        }
        const CellNumbers numbers = numbers_of(report, *cell);
        text += " | ";
        for (const std::size_t run : cell->runs) text += characters[static_cast<std::size_t>(report.runs[run].outcome)];
        text += fmt::format(" {}, {}", numbers.outcome_words(), result_words(report, *cell, numbers));
      }
      text += " |\n";
    }
  return text;
}

}  // namespace gradflow
