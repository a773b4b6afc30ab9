#include "report/settings_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "report/number_text.h"

namespace gradflow {
namespace {

using Setting = std::vector<std::size_t>;
using Settings = std::set<Setting>;

/// "depths 6 and 12", "depth 6", "warm-up 0 and 100".
std::string values_words(const ReportAxis& axis, const std::set<std::size_t>& values) {
  std::vector<std::string> words;
  for (const std::size_t value : values) words.push_back(axis.values[value]);
  const bool takes_plural = axis.name == "depth" || axis.name == "width" || axis.name == "learning rate";
  return axis.name + (words.size() > 1 && takes_plural ? "s " : " ") + listed(words);
}

std::string panels_words(const Report& report, const std::set<std::size_t>& panels) {
  return report.panel_axis ? values_words(*report.panel_axis, panels) : report.panels.front().label;
}

/// The settings of the further axes in words; empty when they are all that there are.
std::string choices_words(const Report& report, const Settings& chosen, const Settings& there_are) {
  if (chosen == there_are) return {};
  // Each axis for itself, where every combination of the values is among them.
  std::vector<std::set<std::size_t>> values(report.axes.size()), all(report.axes.size());
  for (std::size_t axis = 0; axis < report.axes.size(); ++axis) {
    for (const Setting& choice : chosen) values[axis].insert(choice[axis]);
    for (const Setting& choice : there_are) all[axis].insert(choice[axis]);
  }
  const auto in_product = [&](const Setting& choice) {
    for (std::size_t axis = 0; axis < choice.size(); ++axis)
      if (!values[axis].contains(choice[axis])) return false;
    return true;
  };
  const auto product = std::count_if(there_are.begin(), there_are.end(), in_product);
  std::vector<std::string> words;
  if (static_cast<std::size_t>(product) == chosen.size()) {
    for (std::size_t axis = 0; axis < values.size(); ++axis)
      if (values[axis] != all[axis]) words.push_back(values_words(report.axes[axis], values[axis]));
    return listed(words);
  }
  constexpr std::size_t most = 3;
  for (const Setting& choice : chosen) {
    if (words.size() == most) {
      words.push_back(fmt::format("{} more settings", chosen.size() - most));
      break;
    }
    words.push_back("(" + report.choice_label(choice) + ")");
  }
  return listed(words);
}

}  // namespace

std::string settings_words(const Report& report, const std::vector<const ReportCell*>& cells) {
  if (cells.empty()) return {};
  std::map<std::size_t, Settings> chosen, there_are;
  for (const ReportCell* cell : cells) chosen[cell->panel].insert(cell->choice);
  for (const ReportCell& cell : report.cells)
    if (cell.group == cells.front()->group) there_are[cell.panel].insert(cell.choice);

  // Panels with the same settings go together.
  std::map<std::string, std::set<std::size_t>> by_words;
  for (const auto& [panel, choices] : chosen) by_words[choices_words(report, choices, there_are[panel])].insert(panel);
  if (by_words.size() == 1) {
    const auto& [words, panels] = *by_words.begin();
    return "at " + panels_words(report, panels) + (words.empty() ? "" : " with " + words);
  }
  std::vector<std::pair<std::string, std::set<std::size_t>>> in_order(by_words.begin(), by_words.end());
  std::sort(in_order.begin(), in_order.end(),
            [](const auto& a, const auto& b) { return *a.second.begin() < *b.second.begin(); });
  std::vector<std::string> parts;
  for (const auto& [words, panels] : in_order)
    parts.push_back("at " + panels_words(report, panels) + (words.empty() ? "" : " (" + words + ")"));
  return listed(parts);
}

std::string cell_words(const Report& report, const ReportCell& cell) {
  const std::string setting = report.choice_label(cell.choice);
  return " at " + report.panels[cell.panel].label + (setting.empty() ? "" : " with " + setting);
}

std::string run_words(const Report& report, const ReportRun& run) {
  const std::string setting = report.choice_label(run.choice);
  return fmt::format("{}, {}{}{}, seed {}", report.groups[run.group].label, report.panels[run.panel].label,
                     setting.empty() ? "" : ", ", setting, run.seed);
}

}  // namespace gradflow
