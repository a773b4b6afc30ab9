#include "report/probe_section.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "config/choices.h"
#include "core/numbers.h"
#include "report/group_label.h"
#include "report/html.h"
#include "report/number_text.h"
#include "report/svg_chart.h"
#include "report/table_html.h"

namespace gradflow {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t most_series = 8;
constexpr std::size_t most_points = 100;  // a panel has about 260 pixels

std::vector<std::string> kind_labels(std::span<const ProbeKind> kinds) {
  std::vector<ModelConfig> models;
  std::set<std::string> initializations;
  for (const ProbeKind& kind : kinds) {
    ModelConfig& model = models.emplace_back();
    model.placement = choice_named<Placement>(kind.placement).value_or(Placement::none);
    model.norm = choice_named<Norm>(kind.norm).value_or(Norm::none);
    model.residual = choice_named<Residual>(kind.residual).value_or(Residual::add);
    initializations.insert(kind.initialization);
  }
  std::vector<std::string> labels = group_labels(models);
  for (std::size_t i = 0; i < labels.size() && initializations.size() > 1; ++i)
    labels[i] += ", " + kinds[i].initialization;
  return labels;
}

std::size_t seed_count(const RecordedProbe& probe) {
  std::set<std::int64_t> seeds;
  for (const ProbeCell& cell : probe.cells)
    for (const ProbeValue& value : cell.values) seeds.insert(value.seed);
  return seeds.size();
}

std::vector<std::int64_t> depths_of(const RecordedProbe& probe) {
  std::set<std::int64_t> depths;
  for (const ProbeCell& cell : probe.cells) depths.insert(cell.depth);
  return {depths.begin(), depths.end()};
}

std::string label_of(std::string_view quantity) {
  const auto known = std::find(layer_quantities.begin(), layer_quantities.end(), quantity);
  return known != layer_quantities.end() ? std::string(words_of(quantity).label) : axis_name(quantity);
}

std::string capitalized(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

/// The blocks that have a point: all of them, or evenly chosen ones, the first and the last among them.
std::vector<std::size_t> shown_blocks(std::size_t depth) {
  std::vector<std::size_t> blocks;
  const std::size_t count = std::min(depth, most_points);
  for (std::size_t i = 0; i < count; ++i) blocks.push_back(count < 2 ? 0 : i * (depth - 1) / (count - 1));
  return blocks;
}

ChartLine line_of(const ReportGroup& group, const ProbeProfile& profile, std::span<const std::size_t> blocks) {
  ChartLine line{.name = group.label, .ink = group.ink};
  for (const std::size_t block : blocks) {
    const SeedMean& estimate = profile.blocks[block];
    line.mean.push_back(estimate.mean.value_or(nan));
    line.low.push_back(estimate.interval ? estimate.interval->low : line.mean.back());
    line.high.push_back(estimate.interval ? estimate.interval->high : line.mean.back());
    line.predicted_low.push_back(profile.predictions[block] ? profile.predictions[block]->low : nan);
    line.predicted_high.push_back(profile.predictions[block] ? profile.predictions[block]->high : nan);
  }
  return line;
}

/// The axis covers means and predictions; an interval of few seeds may reach beyond it.
void set_axis(Chart& chart) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const ChartPanel& panel : chart.panels)
    for (const ChartLine& line : panel.lines)
      for (const std::vector<double>* values : {&line.mean, &line.predicted_low, &line.predicted_high})
        for (const double value : *values)
          if (std::isfinite(value)) {
            low = std::min(low, value);
            high = std::max(high, value);
          }
  if (low > high) return;
  chart.logarithmic = low > 0 && high > 10 * low;
  if (chart.logarithmic) {
    chart.low = std::pow(10, std::floor(std::log10(low)));
    chart.high = std::pow(10, std::ceil(std::log10(high)));
    return;
  }
  const double margin = high > low ? 0.08 * (high - low) : high == 0 ? 1 : 0.1 * std::abs(high);
  chart.low = low - margin;
  chart.high = high + margin;
}

Chart chart_of(const ReportProbe& probe, const std::string& quantity) {
  const bool gradient = flow_of(quantity) == Flow::gradient;
  Chart chart{.title = capitalized(label_of(quantity)) + ", at initialization", .x_label = "block", .x_name = "block"};
  chart.names_left = gradient;
  std::set<std::size_t> drawn;
  bool predicted = false;
  for (const std::int64_t depth : depths_of(probe.record)) {
    ChartPanel panel{.title = fmt::format("Depth {}", depth)};
    const std::vector<std::size_t> blocks = shown_blocks(static_cast<std::size_t>(depth));
    for (const std::size_t block : blocks) panel.x.push_back(static_cast<double>(block + 1));
    for (std::size_t kind = 0; kind < probe.kinds.size() && panel.lines.size() < most_series; ++kind)
      for (std::size_t i = 0; i < probe.record.cells.size(); ++i) {
        const ProbeCell& cell = probe.record.cells[i];
        if (cell.depth != depth || cell.kind != probe.kinds[kind]) continue;
        for (const ProbeProfile& profile : probe.profiles[i]) {
          if (profile.quantity != quantity || (drawn.size() == most_series && !drawn.contains(kind))) continue;
          drawn.insert(kind);
          predicted = predicted || profile.predicted_places > 0;
          panel.lines.push_back(line_of(probe.groups[kind], profile, blocks));
        }
      }
    if (!panel.lines.empty()) chart.panels.push_back(std::move(panel));
  }
  set_axis(chart);
  const std::size_t seeds = seed_count(probe.record);
  chart.y_label = seeds > 1 ? fmt::format("Mean over {} seeds with its 95 % interval", seeds) : "One seed";
  if (predicted) chart.y_label += "; dashed: closed form";
  if (gradient) chart.y_label += "; it flows from right to left";
  if (drawn.size() == most_series && probe.kinds.size() > most_series)
    chart.y_label += fmt::format("; {} of {} kinds of stacks, the table has all", most_series, probe.kinds.size());
  return chart;
}

bool is_number(const std::string& cell) {
  const char first = cell.empty() ? 'x' : cell.front();
  return (first >= '0' && first <= '9') || first == '-' || cell == "–";
}

std::string table_html(const ReportProbe& probe, const ProbeTable& table) {
  if (table.rows.empty()) return "";
  std::string html =
      R"(<div class="scroll" tabindex="0" role="region" aria-label="Table of a probe"><table><thead><tr>)";
  const std::vector<std::string>& first = table.rows.front().cells;
  const auto classes = [&](std::size_t column) { return is_number(first[column]) ? R"( class="n")" : ""; };
  for (std::size_t i = 0; i < table.headings.size(); ++i)
    html += fmt::format(R"(<th scope="col"{}>{}</th>)", classes(i), escaped_html(table.headings[i]));
  html += "</tr></thead><tbody>\n";
  for (const ProbeTableRow& row : table.rows) {
    html += "<tr>";
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      const bool is_name = i == 0 && probe.kinds.size() > 1;
      html += fmt::format("<td{}>{}{}</td>", classes(i), is_name ? ink_html(probe.groups[row.kind].ink) : "",
                          escaped_html(row.cells[i]));
    }
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

std::string table_markdown(const ProbeTable& table) {
  if (table.rows.empty()) return "";
  const auto line = [](const std::vector<std::string>& cells) {
    std::string text = "|";
    for (const std::string& cell : cells) text += ' ' + escaped_markdown(cell) + " |";
    return text + '\n';
  };
  std::string text = '\n' + line(table.headings) + "|";
  for (std::size_t i = 0; i < table.headings.size(); ++i) text += " --- |";
  text += '\n';
  for (const ProbeTableRow& row : table.rows) text += line(row.cells);
  return text;
}

std::string fact_of(const ReportProbe& probe) {
  const std::size_t depths = depths_of(probe.record).size();
  return fmt::format("{} of stacks, {}, {}", counted(probe.kinds.size(), "kind"), counted(depths, "depth"),
                     counted(seed_count(probe.record), "seed"));
}

}  // namespace

ReportProbe make_report_probe(RecordedProbe record) {
  ReportProbe probe{.record = std::move(record)};
  probe.profiles = cell_profiles(probe.record.cells);
  probe.kinds = probe_kinds(probe.record.cells);
  const std::vector<std::string> labels = kind_labels(probe.kinds);
  const std::vector<Ink> inks = inks_of(labels);
  for (std::size_t i = 0; i < labels.size(); ++i) probe.groups.push_back({labels[i], inks[i]});
  return probe;
}

std::string probes_fact(const Report& report) {
  if (report.probes.size() == 1) return "1 probe: " + fact_of(report.probes.front());
  return counted(report.probes.size(), "probe");
}

std::vector<Picture> probe_pictures(const Report& report) {
  std::vector<Picture> pictures;
  for (std::size_t i = 0; i < report.probes.size(); ++i) {
    const ReportProbe& probe = report.probes[i];
    const std::string number = report.probes.size() > 1 ? std::to_string(i + 1) : "";
    for (const std::string& quantity : profiled_quantities(probe.profiles)) {
      Chart chart = chart_of(probe, quantity);
      chart.id = fmt::format("probe{}-{}", i, pictures.size());
      chart.description = chart.title + "; " + chart.y_label + ".";
      pictures.push_back({"probe", fmt::format("probe{}-{}.svg", number, quantity), chart.title,
                          number.empty() ? "" : probe.record.path, svg(chart)});
    }
  }
  return pictures;
}

std::string probes_note() {
  return "Numbers of stacks before their first update, without training. A block’s value is the root of the sum of "
         "squares of its sub-layers for norms of parameters, else that of its last sub-layer. Rate: slope of its "
         "logarithm for each block away from where the quantity starts, in brackets the 95 % Student interval over "
         "seeds; the verdict is the tenfold rule of the comparison table. Agreement: the interval of a sub-layer’s "
         "mean meets the closed form. On a logarithmic axis an interval that holds zero reaches the lower edge.";
}

std::string probes_html(const Report& report) {
  const std::vector<Picture> pictures = probe_pictures(report);
  auto picture = pictures.begin();
  std::string html;
  for (const ReportProbe& probe : report.probes) {
    const std::vector<ProbeCell>& cells = probe.record.cells;
    html +=
        fmt::format("<h3>{} <span class=\"note\">{}</span></h3>\n", escaped_html(probe.record.path), fact_of(probe));
    for (const std::string& quantity : profiled_quantities(probe.profiles))
      html += fmt::format("<figure class=\"static\">{}</figure>\n", (picture++)->svg) +
              table_html(probe, profile_table_of(cells, probe.profiles, quantity));
    html += table_html(probe, stack_table(cells)) + table_html(probe, depth_table(cells));
  }
  return html;
}

std::string probes_markdown(const Report& report, std::span<const Picture> pictures) {
  if (report.probes.empty()) return "";
  std::vector<const Picture*> own;
  for (const Picture& picture : pictures)
    if (picture.section == "probe") own.push_back(&picture);
  auto picture = own.begin();
  std::string text = "\n## Profiles at initialization\n\n" + probes_note() + "\n";
  for (const ReportProbe& probe : report.probes) {
    const std::vector<ProbeCell>& cells = probe.record.cells;
    text += fmt::format("\n### {}\n\n{}\n", escaped_markdown(probe.record.path), fact_of(probe));
    for (const std::string& quantity : profiled_quantities(probe.profiles)) {
      text += fmt::format("\n![{}]({})\n", escaped_markdown((*picture)->title), (*picture)->file);
      text += table_markdown(profile_table_of(cells, probe.profiles, quantity));
      ++picture;
    }
    text += table_markdown(stack_table(cells)) + table_markdown(depth_table(cells));
  }
  return text;
}

}  // namespace gradflow
