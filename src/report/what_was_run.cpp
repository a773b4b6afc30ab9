#include "report/what_was_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "config/derived.h"
#include "config/formulas.h"
#include "config/resolved.h"
#include "core/numbers.h"
#include "report/html.h"
#include "report/number_text.h"
#include "report/probe_section.h"
#include "report/table_html.h"

namespace gradflow {
namespace {

std::string thousands(std::int64_t value) {
  std::string digits = std::to_string(value);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

/// "5 placements", "1 depth".
std::string counted_axis(const ReportAxis& axis) { return counted(axis.values.size(), axis.name); }

/// "60 runs: 5 placements × 2 depths × 3 seeds"; commas where not every combination is there.
std::string runs_fact(const Report& report) {
  std::set<std::int64_t> seeds;
  for (const ReportRun& run : report.runs) seeds.insert(run.seed);
  std::vector<std::string> parts;
  std::size_t product = seeds.size();
  const auto add = [&](const ReportAxis& axis) {
    product *= axis.values.size();
    if (axis.values.size() > 1) parts.push_back(counted_axis(axis));
  };
  add(report.group_axis);
  if (report.panel_axis) add(*report.panel_axis);
  for (const ReportAxis& axis : report.axes) add(axis);
  if (seeds.size() > 1) parts.push_back(counted(seeds.size(), "seed"));
  std::string text = counted(report.runs.size(), "run");
  for (std::size_t i = 0; i < parts.size(); ++i)
    text += (i == 0 ? ": " : product == report.runs.size() ? " × " : ", ") + parts[i];
  return text;
}

/// "CPU", "CUDA:0".
std::string in_capitals(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

/// The words that a text has in all runs, each once; "a, b and 2 more" where there are many.
std::string distinct(const Report& report, const std::function<std::string(const RecordedRun&)>& text_of_run) {
  std::vector<std::string> words;
  for (const RecordedRun& record : report.records)
    if (const std::string word = text_of_run(record); std::find(words.begin(), words.end(), word) == words.end())
      words.push_back(word);
  if (words.size() > 3) words = {words[0], words[1], fmt::format("{} more", words.size() - 2)};
  return listed(words);
}

std::string manifest_text(const RecordedRun& record, const char* key) {
  const auto found = record.manifest.find(key);
  return found != record.manifest.end() && found->is_string() ? found->get<std::string>() : "";
}

std::string training_fact(const Report& report) {
  std::string task =
      distinct(report, [](const RecordedRun& record) { return std::string(name_of(record.config.data.task)); });
  task[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(task[0])));
  const std::string steps = distinct(report, [](const RecordedRun& record) {
    return counted(static_cast<std::size_t>(record.config.train.steps), "step");
  });
  const std::string rate =
      distinct(report, [](const RecordedRun& record) { return shortest(record.config.train.learning_rate); });
  const std::string warmup = distinct(report, [](const RecordedRun& record) {
    return record.config.train.warmup == 0 ? std::string("no warm-up")
                                           : fmt::format("warm-up {}", record.config.train.warmup);
  });
  return fmt::format("{} task, {}, learning rate {}, {}", task, steps, rate, warmup);
}

/// "2024-01-31 13:05 UTC", or from the first start to the last end.
std::string dates_fact(const Report& report) {
  std::string first, last;
  for (const RecordedRun& record : report.records) {
    const std::string started = manifest_text(record, "started"), ended = manifest_text(record, "ended");
    if (!started.empty() && (first.empty() || started < first)) first = started;
    last = std::max(last, ended);
  }
  const auto words = [](const std::string& time) {
    return time.size() < 16 ? time : time.substr(0, 10) + " " + time.substr(11, 5);
  };
  const std::string from = words(first), to = words(last);
  return from +
         (to.empty() || to == from ? "" : " to " + (to.substr(0, 10) == from.substr(0, 10) ? to.substr(11) : to)) +
         " UTC";
}

/// The sub-layers of a model, one line each, and what follows the last block.
struct Formulas {
  std::vector<std::string> lines;
  std::string end;
  std::string constants;
  bool operator==(const Formulas&) const = default;
};

Formulas formulas_of(const ModelConfig& model) {
  const StackFormulas stack = stack_formulas(model);
  Formulas formulas;
  std::set<std::string> where;
  for (const BlockFormulas& blocks : stack.blocks)
    for (const SubLayerFormula& sublayer : blocks.sublayers) {
      const std::string range = stack.blocks.size() > 1 ? block_range(blocks) + ": " : "";
      formulas.lines.push_back(range + "x ← " + sublayer.stream.line());
      if (!sublayer.second.empty()) formulas.lines.push_back(range + "r ← " + sublayer.second);
    }
  formulas.end = stack.end.line();
  if (model.placement == Placement::deepnorm)
    formulas.constants =
        fmt::format("α {}, β {}", number_text(deepnorm_alpha(model), 7), number_text(deepnorm_beta(model), 7));
  else if (const double gain = placement_gain(model); gain != 1)
    formulas.constants = "initial gain " + number_text(gain, 7);
  return formulas;
}

/// Of one group what its panels have in common stands once.
struct GroupFormulas {
  std::size_t group = 0;
  std::vector<std::pair<std::string, Formulas>> variants;  ///< "depth 6" (empty when there is one) and its formulas
  std::string parameters;                                  ///< "55,936 / 110,272"
};

std::vector<GroupFormulas> all_formulas(const Report& report) {
  std::vector<GroupFormulas> all;
  for (std::size_t g = 0; g < report.groups.size(); ++g) {
    GroupFormulas of_group{.group = g, .variants = {}, .parameters = {}};
    std::vector<std::string> counts;
    for (std::size_t p = 0; p < report.panels.size(); ++p) {
      std::set<std::int64_t> parameters;
      for (std::size_t i = 0; i < report.runs.size(); ++i) {
        if (report.runs[i].group != g || report.runs[i].panel != p) continue;
        if (report.runs[i].parameters > 0) parameters.insert(report.runs[i].parameters);
        const Formulas formulas = formulas_of(report.records[i].config.model);
        const auto known = [&](const auto& variant) { return variant.second == formulas; };
        if (std::none_of(of_group.variants.begin(), of_group.variants.end(), known))
          of_group.variants.emplace_back(report.panels[p].label, formulas);
      }
      if (parameters.empty()) continue;
      const std::string low = thousands(*parameters.begin()), high = thousands(*parameters.rbegin());
      const std::string count = low == high ? low : low + "–" + high;
      if (counts.empty() || counts.back() != count) counts.push_back(count);
    }
    if (of_group.variants.empty()) continue;
    if (of_group.variants.size() == 1) of_group.variants.front().first.clear();
    for (const std::string& count : counts) of_group.parameters += (of_group.parameters.empty() ? "" : " / ") + count;
    all.push_back(std::move(of_group));
  }
  return all;
}

std::string parameters_heading(const Report& report) {
  std::string heading = "parameters";
  if (report.panel_axis && report.panels.size() <= 4) {
    heading += ", " + report.panel_axis->name;
    for (std::size_t p = 0; p < report.panels.size(); ++p) heading += (p == 0 ? " " : " / ") + report.panels[p].value;
  }
  return heading;
}

void remove_key(Json& json, std::string_view path) {
  const std::size_t dot = path.find('.');
  const std::string first(path.substr(0, dot));
  if (!json.is_object() || !json.contains(first)) return;
  if (dot == std::string_view::npos)
    json.erase(first);
  else
    remove_key(json[first], path.substr(dot + 1));
}

}  // namespace

std::vector<std::string> header_facts(const Report& report) {
  const auto end_with_left_out = [&](std::vector<std::string> facts) {
    if (!report.left_out.empty()) facts.push_back(counted(report.left_out.size(), "folder") + " left out");
    return facts;
  };
  if (report.runs.empty()) return end_with_left_out({probes_fact(report)});
  std::vector<std::string> facts = {runs_fact(report), training_fact(report), dates_fact(report)};
  facts.push_back("gradflow " + distinct(report, [](const RecordedRun& record) {
                    return fmt::format("{} ({})", manifest_text(record, "version"),
                                       manifest_text(record, "git_revision"));
                  }));
  facts.push_back(
      "LibTorch " + distinct(report, [](const RecordedRun& record) { return manifest_text(record, "libtorch"); }) +
      ", " + distinct(report, [](const RecordedRun& record) { return in_capitals(manifest_text(record, "device")); }) +
      ", " +
      distinct(report, [](const RecordedRun& record) { return std::string(name_of(record.config.compute.dtype)); }));
  const auto unfinished = static_cast<std::size_t>(std::count_if(
      report.runs.begin(), report.runs.end(), [](const ReportRun& run) { return run.outcome == Outcome::unfinished; }));
  if (unfinished > 0) facts.push_back(counted(unfinished, "run") + " not finished");
  if (!report.probes.empty()) facts.push_back(probes_fact(report));
  return end_with_left_out(std::move(facts));
}

std::string formulas_html(const Report& report) {
  const std::string heading = escaped_html(parameters_heading(report));
  std::string html = fmt::format(
      R"(<div class="scroll stack"><table class="wrap"><thead><tr><th>{}</th><th>sub-layers, x the stream</th>)"
      R"(<th>after the last block</th><th>constants</th><th class="n">{}</th></tr></thead><tbody>)",
      escaped_html(report.group_axis.name), heading);
  html += '\n';
  for (const GroupFormulas& group : all_formulas(report)) {
    std::string sublayers, constants;
    std::vector<std::string> ends;
    for (const auto& [panel, formulas] : group.variants) {
      if (!panel.empty()) sublayers += fmt::format("<small>{}</small><br>", escaped_html(panel));
      for (const std::string& line : formulas.lines) sublayers += "<code>" + escaped_html(line) + "</code><br>";
      if (!formulas.constants.empty())
        constants +=
            fmt::format("{}{}<br>", panel.empty() ? "" : escaped_html(panel) + ": ", escaped_html(formulas.constants));
      if (std::find(ends.begin(), ends.end(), formulas.end) == ends.end()) ends.push_back(formulas.end);
    }
    std::string end;
    for (const std::string& each : ends)
      end += (end.empty() ? "<code>" : "<br><code>") + escaped_html(each) + "</code>";
    html += fmt::format(R"(<tr><th scope="row">{}</th><td>{}</td><td data-l="after the last block">{}</td>)"
                        R"(<td data-l="constants">{}</td><td class="n" data-l="{}">{}</td></tr>)",
                        key_html(report.groups[group.group]), sublayers, end, constants.empty() ? "–" : constants,
                        heading, group.parameters.empty() ? "–" : group.parameters);
    html += '\n';
  }
  return html + "</tbody></table></div>";
}

std::string formulas_markdown(const Report& report) {
  std::string text;
  for (const GroupFormulas& group : all_formulas(report)) {
    text += fmt::format("- {}", escaped_markdown(report.groups[group.group].label));
    if (!group.parameters.empty()) text += fmt::format(" ({}: {})", parameters_heading(report), group.parameters);
    text += '\n';
    for (const auto& [panel, formulas] : group.variants) {
      const std::string place = panel.empty() ? "" : escaped_markdown(panel) + ": ";
      for (const std::string& line : formulas.lines) text += fmt::format("  - {}`{}`\n", place, line);
      text += fmt::format("  - {}after the last block `{}`{}\n", place, formulas.end,
                          formulas.constants.empty() ? "" : "; " + formulas.constants);
    }
  }
  return text;
}

std::string common_configuration(const Report& report) {
  Json json = to_json(report.records.front().config);
  remove_key(json, "name");
  for (const std::string& key : report.differing) remove_key(json, key);
  // Keys that follow from others differ too, but are no axis of the study.
  for (const RecordedRun& record : report.records) {
    const Json other = to_json(record.config);
    for (auto& [group, value] : json.items()) {
      if (!value.is_object()) continue;
      std::vector<std::string> unequal;
      for (const auto& [key, own] : value.items())
        if (other[group][key] != own && !own.is_object()) unequal.push_back(key);
      for (const std::string& key : unequal) value.erase(key);
    }
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace gradflow
