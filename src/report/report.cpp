#include "report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

#include "core/error.h"
#include "report/group_label.h"
#include "report/probe_section.h"

namespace gradflow {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr std::string_view depth_key = "model.depth";

bool is_colour_key(std::string_view key) {
  return key == "model.placement" || key == "model.residual" || key == "model.norm";
}

/// The numbers 0…n−1 of the distinct values, and of each element which it has.
struct Numbering {
  std::vector<std::size_t> of;
  std::vector<std::size_t> firsts;  ///< of each distinct value the first element that has it
};

/// Numbers values by their rank.
Numbering by_rank(const std::vector<std::size_t>& ranks) {
  std::set<std::size_t> distinct(ranks.begin(), ranks.end());
  Numbering numbering;
  for (const std::size_t rank : distinct)
    numbering.firsts.push_back(static_cast<std::size_t>(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin()));
  for (const std::size_t rank : ranks)
    numbering.of.push_back(static_cast<std::size_t>(std::distance(distinct.begin(), distinct.find(rank))));
  return numbering;
}

/// Where each group of a study stands: its colour, its panel, its place on each further axis.
class Arrangement {
 public:
  explicit Arrangement(const Study& study) : study_(study), places_(study.groups.size()) {}

  void arrange(Report& report) {
    std::vector<std::size_t> rest;  // keys that are not colour
    std::vector<std::size_t> colour;
    for (std::size_t key = 0; key < study_.keys.size(); ++key)
      (is_colour_key(study_.keys[key].key) ? colour : rest).push_back(key);

    const auto depth =
        std::find_if(rest.begin(), rest.end(), [&](std::size_t key) { return study_.keys[key].key == depth_key; });
    const std::optional<std::size_t> depth_place = depth == rest.end() ? std::nullopt : std::optional(*depth);
    if (depth_place) rest.erase(depth);

    if (!colour.empty() || rest.empty()) {
      colour_by_model(report);
    } else {
      colour_by_key(report, rest.front());
      rest.erase(rest.begin());
    }
    if (depth_place) report.panel_axis = take_axis(*depth_place);
    for (const std::size_t key : rest) {
      if (!splits(key)) continue;
      ReportAxis axis = take_axis(key);
      if (!report.panel_axis)
        report.panel_axis = std::move(axis);
      else
        report.axes.push_back(std::move(axis));
    }
    if (!report.panel_axis)
      for (std::vector<std::size_t>& place : places_) place.push_back(0);
  }

  /// Of a group of the study: group, panel, then one place an axis.
  const std::vector<std::size_t>& place(std::size_t group) const { return places_[group]; }

 private:
  const ModelConfig& model(std::size_t group) const {
    return study_.runs[study_.groups[group].runs.front()].config.model;
  }

  void colour_by_model(Report& report) {
    std::vector<ModelConfig> models;
    for (std::size_t i = 0; i < study_.groups.size(); ++i) models.push_back(model(i));
    const std::vector<std::string> labels = group_labels(models);
    // Placements in the order of their inks, the others as the study has them.
    std::vector<std::string> names;
    for (const std::string& label : labels)
      if (std::find(names.begin(), names.end(), label) == names.end()) names.push_back(label);
    std::stable_sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
      const auto place = [](const std::string& name) { return kept_slot(name) == 0 ? ink_slots + 1 : kept_slot(name); };
      return place(a) < place(b);
    });
    report.group_axis = {"placement", names};
    set_groups(report, names);
    for (std::size_t i = 0; i < labels.size(); ++i)
      places_[i].push_back(static_cast<std::size_t>(std::find(names.begin(), names.end(), labels[i]) - names.begin()));
  }

  void colour_by_key(Report& report, std::size_t key) {
    report.group_axis = take_axis(key);
    std::vector<std::string> labels;
    for (const std::string& value : report.group_axis.values) labels.push_back(report.group_axis.name + " " + value);
    set_groups(report, labels);
  }

  static void set_groups(Report& report, const std::vector<std::string>& labels) {
    const std::vector<Ink> inks = inks_of(labels);
    for (std::size_t i = 0; i < labels.size(); ++i) report.groups.push_back({labels[i], inks[i]});
  }

  /// Whether groups that stand in the same place so far differ in the key.
  bool splits(std::size_t key) const {
    std::map<std::vector<std::size_t>, std::string> seen;
    for (std::size_t i = 0; i < places_.size(); ++i) {
      const auto [at, is_new] = seen.emplace(places_[i], study_.groups[i].words[key]);
      if (!is_new && at->second != study_.groups[i].words[key]) return true;
    }
    return false;
  }

  /// Makes the key an axis: every group gets its place on it.
  ReportAxis take_axis(std::size_t key) {
    const Numbering numbering = by_rank(value_ranks(study_, key));
    ReportAxis axis{axis_name(study_.keys[key].label), {}};
    for (const std::size_t first : numbering.firsts) axis.values.push_back(study_.groups[first].words[key]);
    for (std::size_t i = 0; i < places_.size(); ++i) places_[i].push_back(numbering.of[i]);
    return axis;
  }

  const Study& study_;
  std::vector<std::vector<std::size_t>> places_;
};

Outcome outcome_of(const RecordedRun& run) {
  if (!run.finished()) return Outcome::unfinished;
  const std::optional<Verdict> verdict = run.verdict();
  if (run.status == RunStatus::diverged || verdict == Verdict::diverged) return Outcome::diverged;
  if (!verdict) return Outcome::finished;
  switch (*verdict) {
    case Verdict::learned: return Outcome::learned;
    case Verdict::learning: return Outcome::learning;
    case Verdict::stuck: return Outcome::stuck;
    case Verdict::worse: return Outcome::worse;
    case Verdict::diverged: break;
  }
  return Outcome::diverged;
}

bool has_number(const std::vector<double>& values) {
  return std::any_of(values.begin(), values.end(), [](double value) { return !std::isnan(value); });
}

void read_curves(const RecordedRun& record, ReportRun& run) {
  StepSeries series =
      read_steps(record, std::to_array<std::string_view>({"loss", "grad_norm", "learning_rate", "eval_loss"}));
  run.steps = std::move(series.steps);
  run.loss = std::move(series.columns[0]);
  run.grad_norm = std::move(series.columns[1]);
  run.learning_rate = std::move(series.columns[2]);
  if (has_number(series.columns[3])) run.eval_loss = std::move(series.columns[3]);
}

void read_depth(const RecordedRun& record, ReportRun& run) {
  const LayerSeries series = read_layers(record, layer_quantities);
  run.layer_steps = series.steps;
  run.depth = record.config.model.depth;
  const auto of_first_block =
      std::count_if(series.rows.begin(), series.rows.end(), [](const SubLayerName& row) { return row.layer == 1; });
  run.sublayers = static_cast<std::size_t>(std::max<std::ptrdiff_t>(of_first_block, 1));

  // Where each recorded row stands among those of the pictures.
  std::vector<std::size_t> places;
  std::map<std::int64_t, std::size_t> met;
  for (const SubLayerName& row : series.rows) {
    const auto layer = static_cast<std::size_t>(row.layer);
    if (row.layer == 0)
      places.push_back(0);
    else if (row.layer > run.depth)
      places.push_back(run.rows() - (row.sublayer == "final_norm" ? 2 : 1));
    else
      places.push_back(run.sublayers * (layer - 1) + 1 + met[row.layer]++);
  }
  for (std::size_t column = 0; column < layer_quantities.size(); ++column) {
    if (!has_number(series.columns[column])) continue;
    std::vector<double> values(series.steps.size() * run.rows(), nan);
    for (std::size_t step = 0; step < series.steps.size(); ++step)
      for (std::size_t row = 0; row < places.size(); ++row)
        if (places[row] < run.rows()) values[step * run.rows() + places[row]] = series.value(column, step, row);
    run.layers.emplace(layer_quantities[column], std::move(values));
  }
}

ReportRun read_report_run(const RecordedRun& record) {
  ReportRun run{
      .path = record.path, .seed = record.config.seed, .status = record.status, .outcome = outcome_of(record)};
  run.first_loss = record.number("/first_loss");
  run.final_loss = record.final_loss();
  run.unigram_entropy = record.unigram_entropy();
  run.entropy_rate = record.entropy_rate();
  run.parameters = static_cast<std::int64_t>(record.number("/parameters/count").value_or(0));
  read_curves(record, run);
  read_depth(record, run);
  run.spikes = read_spikes(record);
  run.steps_per_second = steps_per_second(record);
  return run;
}

/// The value that all of them have; absent when they differ or lack it.
std::optional<double> shared(const std::vector<const ReportRun*>& runs, std::optional<double> ReportRun::*number) {
  std::optional<double> value;
  for (const ReportRun* run : runs) {
    if (run->outcome == Outcome::unfinished && !(run->*number)) continue;  // a run without a summary knows none
    if (!(run->*number) || (value && *value != *(run->*number))) return std::nullopt;
    value = run->*number;
  }
  return value;
}

std::vector<ReferenceLine> reference_lines(const std::vector<const ReportRun*>& runs, const std::set<Task>& tasks) {
  std::vector<ReferenceLine> lines;
  const std::optional<double> entropy = shared(runs, &ReportRun::unigram_entropy);
  const std::optional<double> rate = shared(runs, &ReportRun::entropy_rate);
  const bool symbols = std::all_of(tasks.begin(), tasks.end(), is_sequence_task);
  if (rate && (!entropy || *rate < *entropy))
    lines.push_back({symbols ? "entropy rate" : "best possible", *rate, false});
  if (entropy) lines.push_back({symbols ? "unigram entropy" : "best constant answer", *entropy, true});
  return lines;
}

void add_panels(Report& report, const std::set<Task>& tasks) {
  const std::size_t count = report.panel_axis ? report.panel_axis->values.size() : 1;
  for (std::size_t p = 0; p < count; ++p) {
    std::vector<const ReportRun*> runs;
    ReportPanel panel;
    for (const ReportRun& run : report.runs)
      if (run.panel == p) {
        runs.push_back(&run);
        panel.depth = std::max(panel.depth, run.depth);
      }
    panel.value = report.panel_axis ? report.panel_axis->values[p] : std::to_string(panel.depth);
    panel.label = (report.panel_axis ? report.panel_axis->name : "depth") + " " + panel.value;
    panel.lines = reference_lines(runs, tasks);
    report.panels.push_back(std::move(panel));
  }
}

/// Runs that learned come first: a spike in them is news, in a run that failed it is one of many.
void collect_spikes(Report& report) {
  for (std::size_t i = 0; i < report.runs.size(); ++i)
    for (const SpikeRow& row : report.runs[i].spikes) report.spikes.push_back({i, row});
  const auto rank = [&](const ReportSpike& spike) {
    switch (report.runs[spike.run].outcome) {
      case Outcome::learned:
      case Outcome::finished: return 0;
      case Outcome::stuck: return 1;
      case Outcome::learning: return 2;
      case Outcome::worse: return 3;
      case Outcome::unfinished: return 4;
      case Outcome::diverged: return 5;
    }
    return 6;
  };
  std::stable_sort(report.spikes.begin(), report.spikes.end(), [&](const ReportSpike& a, const ReportSpike& b) {
    return rank(a) != rank(b) ? rank(a) < rank(b) : a.row.score > b.row.score;
  });
}

constexpr std::string_view question_of_probes = "what do the stacks do before training?";

std::string question_of(const Report& report) {
  const bool several = report.groups.size() > 1;
  std::string question = several ? fmt::format("which {} trains", report.group_axis.name) : "what happens";
  if (several && report.panel_axis) question += fmt::format(" at which {}", report.panel_axis->name);
  if (!several)
    question = report.panel_axis
                   ? fmt::format("at which {} does {} train", report.panel_axis->name, report.groups.front().label)
                   : fmt::format("does {} train", report.groups.front().label);
  return question + "?";
}

}  // namespace

std::string_view name_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::learned: return "learned";
    case Outcome::learning: return "learning";
    case Outcome::stuck: return "stuck";
    case Outcome::worse: return "worse";
    case Outcome::diverged: return "diverged";
    case Outcome::finished: return "finished";
    case Outcome::unfinished: return "unfinished";
  }
  return "";
}

bool is_bad(Outcome outcome) {
  return outcome == Outcome::stuck || outcome == Outcome::worse || outcome == Outcome::diverged;
}

std::vector<double> ReportRun::profile(std::string_view quantity, std::size_t layer_step) const {
  const auto found = layers.find(quantity);
  if (found == layers.end()) return {};
  std::vector<double> values;
  for (std::size_t block = 0; block < static_cast<std::size_t>(depth); ++block) {
    const auto first = found->second.begin() + static_cast<std::ptrdiff_t>(layer_step * rows() + 1 + block * sublayers);
    const auto last = first + static_cast<std::ptrdiff_t>(sublayers);
    values.push_back(quantity == "grad_norm" ? std::sqrt(std::inner_product(first, last, first, 0.0)) : *(last - 1));
  }
  return has_number(values) ? values : std::vector<double>{};
}

const ReportCell* Report::cell(std::size_t group, std::size_t panel, std::span<const std::size_t> choice) const {
  const auto found = std::find_if(cells.begin(), cells.end(), [&](const ReportCell& each) {
    return each.group == group && each.panel == panel &&
           std::equal(choice.begin(), choice.end(), each.choice.begin(), each.choice.end());
  });
  return found == cells.end() ? nullptr : &*found;
}

std::vector<std::vector<std::size_t>> Report::choices() const {
  std::set<std::vector<std::size_t>> distinct;
  for (const ReportCell& each : cells) distinct.insert(each.choice);
  return {distinct.begin(), distinct.end()};
}

std::string Report::choice_label(std::span<const std::size_t> choice) const {
  std::string label;
  for (std::size_t axis = 0; axis < choice.size(); ++axis)
    label += (axis > 0 ? ", " : "") + axes[axis].name + " " + axes[axis].values[choice[axis]];
  return label;
}

bool Report::measured(std::string_view quantity) const {
  return std::any_of(runs.begin(), runs.end(), [&](const ReportRun& run) { return run.layers.contains(quantity); });
}

bool Report::evaluated() const {
  return std::any_of(runs.begin(), runs.end(), [](const ReportRun& run) { return !run.eval_loss.empty(); });
}

Report make_report(Study study, const std::string& name, std::span<const std::string> probe_folders) {
  Report report;
  report.title = name;
  for (const std::string& folder : probe_folders) try {
      report.probes.push_back(make_report_probe(read_probe(folder)));
    } catch (const Error& error) {
      report.left_out.push_back({folder, error.what()});
    }
  if (study.runs.empty() && !report.probes.empty()) {
    report.question = question_of_probes;
    return report;
  }
  Arrangement arrangement(study);
  arrangement.arrange(report);
  report.differing = {"seed"};
  for (const StudyKey& key : study.keys) report.differing.emplace_back(key.key);

  std::set<Task> tasks;
  for (std::size_t g = 0; g < study.groups.size(); ++g) {
    const std::vector<std::size_t>& place = arrangement.place(g);
    ReportCell cell{place[0], place[1], {place.begin() + 2, place.end()}, {}};
    for (const std::size_t index : study.groups[g].runs) {
      RecordedRun& record = study.runs[index];
      try {
        ReportRun run = read_report_run(record);
        run.group = cell.group;
        run.panel = cell.panel;
        run.choice = cell.choice;
        cell.runs.push_back(report.runs.size());
        report.runs.push_back(std::move(run));
        tasks.insert(record.config.data.task);
        report.records.push_back(record);
      } catch (const Error& error) {
        report.left_out.push_back({record.path, error.what()});
      }
    }
    if (!cell.runs.empty()) report.cells.push_back(std::move(cell));
  }
  if (report.runs.empty()) {
    if (report.probes.empty())
      throw Error("nothing is left to report on: the tables of all runs and probes are damaged");
    Report probes{.title = name, .question = std::string(question_of_probes)};
    probes.probes = std::move(report.probes);
    probes.left_out = std::move(report.left_out);
    return probes;
  }

  std::stable_sort(report.cells.begin(), report.cells.end(), [](const ReportCell& a, const ReportCell& b) {
    return std::tie(a.group, a.panel, a.choice) < std::tie(b.group, b.panel, b.choice);
  });
  report.loss_unit = loss_unit(tasks);
  add_panels(report, tasks);
  collect_spikes(report);
  report.question = question_of(report);
  return report;
}

}  // namespace gradflow
