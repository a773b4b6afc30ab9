#include "report/spike_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/findings.h"
#include "report/html.h"
#include "report/number_text.h"
#include "report/settings_words.h"
#include "report/table_html.h"

namespace gradflow {
namespace {

std::string what_words(const SpikeRow& row) {
  const std::string series = row.series == SpikeSeries::loss ? "loss" : "gradient norm";
  if (row.kind == EpisodeKind::nonfinite) return series + " not finite";
  return series + (row.kind == EpisodeKind::shift ? ", lasting shift" : "");
}

std::string span_words(const SpikeRow& row) {
  return row.start_step == row.end_step ? "" : fmt::format("({}–{})", row.start_step, row.end_step);
}

std::string rise_words(const SpikeRow& row) {
  return number_text(row.level_before) + " → " + (std::isfinite(row.peak) ? number_text(row.peak) : "not finite");
}

/// "update ratio, step 117, 1 before the peak, score 55.1".
std::string evidence_words(const SpikeRow& row) {
  if (!row.first) return {};
  std::string words = fmt::format("{}, step {}", quantity_words(row.first->quantity), row.first->step);
  if (row.peak_step > row.first->step) words += fmt::format(", {} before the peak", row.peak_step - row.first->step);
  return words + (std::isfinite(row.first->score) ? ", score " + number_text(row.first->score, 3) : ", not finite");
}

std::string score_words(const SpikeRow& row) { return std::isfinite(row.score) ? number_text(row.score, 3) : "–"; }

std::string cut_words(const Report& report) {
  if (report.spikes.size() <= most_spikes) return {};
  return fmt::format("The first {} of {} episodes.", most_spikes, report.spikes.size());
}

}  // namespace

std::string spike_table_html(const Report& report, bool with_links) {
  if (report.spikes.empty()) return "<p>No spike in any run.</p>";
  std::string html =
      R"(<div class="scroll stack" tabindex="0" role="region" aria-label="Spikes"><table class="wrap"><thead><tr><th class="n">#</th>)"
      R"(<th>run</th><th>what</th><th class="n">peak at step</th><th class="n">level → peak</th><th class="n">score</th>)"
      R"(<th>recovered</th><th>moved first</th>)";
  html += with_links ? R"(<th class="noprint"></th>)" : "";
  html += "</tr></thead><tbody>\n";
  for (std::size_t i = 0; i < std::min(report.spikes.size(), most_spikes); ++i) {
    const SpikeRow& row = report.spikes[i].row;
    const ReportRun& run = report.runs[report.spikes[i].run];
    ReportGroup key = report.groups[run.group];
    key.label = run_words(report, run);
    const std::string span = span_words(row), evidence = evidence_words(row);
    html += fmt::format(
        R"(<tr><td class="n" data-l="spike">{}</td><th scope="row">{}</th><td>{}</td><td class="n" data-l="peak at step"><b>{}</b>{}</td>)"
        R"(<td class="n">{}</td><td class="n" data-l="score">{}</td><td data-l="recovered">{}</td><td data-l="moved first">{}{}</td>)",
        i + 1, key_html(key), what_words(row), row.peak_step, span.empty() ? "" : " <small>" + span + "</small>",
        rise_words(row), score_words(row), row.recovered ? "yes" : "no",
        row.first ? escaped_html(place_words(row.first->name)) : "–",
        evidence.empty() ? "" : "<br><small>" + escaped_html(evidence) + "</small>");
    if (with_links) html += fmt::format(R"(<td class="noprint"><a href="#loss" data-spike="{}">show</a></td>)", i);
    html += "</tr>\n";
  }
  html += "</tbody></table></div>";
  if (const std::string cut = cut_words(report); !cut.empty()) html += "<p class=\"note\">" + cut + "</p>";
  return html;
}

std::string spike_table_markdown(const Report& report) {
  if (report.spikes.empty()) return "No spike in any run.\n";
  std::string text =
      "| # | run | what | peak at step | level → peak | score | recovered | moved first |\n"
      "| ---: | --- | --- | ---: | ---: | ---: | --- | --- |\n";
  for (std::size_t i = 0; i < std::min(report.spikes.size(), most_spikes); ++i) {
    const SpikeRow& row = report.spikes[i].row;
    const std::string span = span_words(row), evidence = evidence_words(row);
    text += fmt::format("| {} | {} | {} | {}{}{} | {} | {} | {} | {}{}{} |\n", i + 1,
                        escaped_markdown(run_words(report, report.runs[report.spikes[i].run])), what_words(row),
                        row.peak_step, span.empty() ? "" : " ", span, rise_words(row), score_words(row),
                        row.recovered ? "yes" : "no", row.first ? place_words(row.first->name) : "–",
                        evidence.empty() ? "" : ": ", evidence);
  }
  if (const std::string cut = cut_words(report); !cut.empty()) text += "\n" + cut + "\n";
  return text;
}

}  // namespace gradflow
