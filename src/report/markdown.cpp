#include "report/markdown.h"

#include <fmt/format.h>

#include "report/comparison_table.h"
#include "report/findings.h"
#include "report/html.h"
#include "report/matrix.h"
#include "report/probe_section.h"
#include "report/spike_table.h"
#include "report/what_was_run.h"

namespace gradflow {

namespace {

/// What the runs show, section by section.
std::string runs_markdown(const Report& report, std::span<const Picture> pictures) {
  std::string text;
  text += "\n## What trains?\n\n" + matrix_markdown(report);
  text +=
      "\nOne mark a seed (● learned, ◐ learning, ○ stuck, ▼ worse, ✕ diverged), then the final loss: mean of the last "
      "20, "
      "mean ± 95 % interval over seeds from three on.\n";
  text += "\n## Findings\n\n" + findings_markdown(findings_of(report));
  text += "\n## Comparison\n\n" + table_markdown(comparison_table(report));
  std::string title;
  for (const Picture& picture : pictures) {
    if (picture.section == "probe") continue;
    if (picture.title != title) text += fmt::format("\n## {}\n", picture.title);
    title = picture.title;
    text += fmt::format("\n![{}{}{}]({})\n", picture.title, picture.choice.empty() ? "" : " ",
                        escaped_markdown(picture.choice), picture.file);
  }
  text += "\n## What spiked, and which layer moved first?\n\n" + spike_table_markdown(report);
  text += probes_markdown(report, pictures);
  text += "\n## What exactly was run?\n\n" + formulas_markdown(report);
  return text;
}

}  // namespace

std::string report_markdown(const Report& report, std::span<const Picture> pictures) {
  std::string text = fmt::format("# {}: {}\n\n", escaped_markdown(report.title), escaped_markdown(report.question));
  for (const std::string& fact : header_facts(report)) text += "- " + escaped_markdown(fact) + "\n";
  if (!report.command.empty()) text += "\n```sh\n" + report.command + "\n```\n";
  text += report.runs.empty() ? probes_markdown(report, pictures) : runs_markdown(report, pictures);
  if (!report.left_out.empty()) {
    text += "\nLeft out:\n\n";
    for (const LeftOut& each : report.left_out)
      text += fmt::format("- {}: {}\n", escaped_markdown(each.path), escaped_markdown(each.reason));
  }
  return text;
}

}  // namespace gradflow
