#include "report/pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <set>
#include <stdexcept>

#include "report/number_text.h"
#include "report/svg_chart.h"

namespace gradflow {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

constexpr auto quantities = std::to_array<QuantityWords>({
    {"grad_norm", "parameter gradient, ‖∂L/∂W‖", "When and where does the gradient fade?"},
    {"stream_grad_norm", "stream gradient, ‖∂L/∂x‖", "When and where does the stream gradient fade?"},
    {"stream_variance", "stream variance", "When and where does the stream grow?"},
    {"update_ratio", "update ratio, ‖ΔW‖/‖W‖", "Which layers still move?"},
    {"branch_ratio", "branch ratio, RMS of branch / stream", "How much does each branch add?"},
});

using Setting = std::vector<std::size_t>;

bool usable(double value, bool logarithmic) { return std::isfinite(value) && (!logarithmic || value > 0); }

/// Appends the mean and the range of what is usable; nan where nothing is.
void pool(ChartLine& line, const std::vector<double>& values, bool logarithmic) {
  double sum = 0, low = std::numeric_limits<double>::infinity(), high = -low;
  std::size_t count = 0;
  for (const double value : values) {
    if (!usable(value, logarithmic)) continue;
    sum += logarithmic ? std::log(value) : value;
    low = std::min(low, value);
    high = std::max(high, value);
    ++count;
  }
  const double average = count > 0 ? sum / static_cast<double>(count) : nan;
  line.mean.push_back(logarithmic ? std::exp(average) : average);
  line.low.push_back(count > 0 ? low : nan);
  line.high.push_back(count > 0 ? high : nan);
}

/// The smallest and largest of the values that were given.
class Extent {
 public:
  void add(double value, bool logarithmic = false) {
    if (!usable(value, logarithmic)) return;
    low_ = std::min(low_, value);
    high_ = std::max(high_, value);
  }
  bool empty() const { return low_ > high_; }
  double low() const { return low_; }
  double high() const { return high_; }

 private:
  double low_ = std::numeric_limits<double>::infinity(), high_ = -std::numeric_limits<double>::infinity();
};

/// Of these runs those that did not diverge, unless all did: what an axis covers.
std::vector<const ReportRun*> kept(const Report& report, const Setting& choice) {
  std::vector<const ReportRun*> all, without;
  for (const ReportRun& run : report.runs) {
    if (run.choice != choice) continue;
    all.push_back(&run);
    if (run.outcome != Outcome::diverged) without.push_back(&run);
  }
  return without.empty() ? all : without;
}

/// Neighbouring points of a long line taken together: the mean at the middle one, the band around all of them.
void thin(ChartPanel& panel) {
  constexpr std::size_t most = 250;  // about one a pixel
  const std::size_t by = (panel.x.size() + most - 1) / most;
  if (by < 2) return;
  std::vector<double> x;
  for (std::size_t i = 0; i < panel.x.size(); i += by) x.push_back(panel.x[std::min(i + by / 2, panel.x.size() - 1)]);
  x.front() = panel.x.front();
  x.back() = panel.x.back();
  for (ChartLine& line : panel.lines) {
    ChartLine thinned{line.name, line.ink, {}, {}, {}};
    for (std::size_t i = 0; i < panel.x.size(); i += by) {
      const std::size_t end = std::min(i + by, panel.x.size());
      Extent band;
      for (std::size_t k = i; k < end; ++k) {
        band.add(line.low[k]);
        band.add(line.high[k]);
      }
      const std::size_t place = i == 0 ? 0 : end == panel.x.size() ? end - 1 : i + by / 2;
      thinned.mean.push_back(line.mean[place]);
      thinned.low.push_back(band.empty() ? nan : band.low());
      thinned.high.push_back(band.empty() ? nan : band.high());
    }
    line = std::move(thinned);
  }
  panel.x = std::move(x);
}

void set_decades(Chart& chart, const Extent& extent) {
  chart.logarithmic = true;
  if (extent.empty()) {
    chart.low = 0.1;
    chart.high = 10;
    return;
  }
  chart.low = std::pow(10, std::floor(std::log10(extent.low())));
  chart.high = std::max(std::pow(10, std::ceil(std::log10(extent.high()))), 10 * chart.low);
}

std::string title_of(const Report& report, std::size_t panel, const Setting& choice) {
  const std::string setting = report.choice_label(choice);
  std::string title = report.panels[panel].label + (setting.empty() ? "" : ", " + setting);
  if (!title.empty()) title[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(title[0])));
  return title;
}

std::string seeds_words(const Report& report, std::string_view kind_of_mean) {
  std::size_t most = 0;
  for (const ReportCell& cell : report.cells) most = std::max(most, cell.runs.size());
  return most > 1 ? fmt::format("line: {} over {} seeds, band: range", kind_of_mean, most) : "one seed";
}

std::string group_words(const Report& report) {
  std::vector<std::string> labels;
  for (const ReportGroup& group : report.groups) labels.push_back(group.label);
  return listed(labels);
}

Chart loss_chart(const Report& report, const Setting& choice) {
  Chart chart{.id = "loss",
              .title = "Which runs learn, and how fast?",
              .y_label = fmt::format("Training loss, {}; {}", report.loss_unit, seeds_words(report, "mean")),
              .x_label = "step",
              .x_name = "step"};
  const std::vector<std::int64_t> steps = all_steps(report);
  Extent lines, losses;
  for (std::size_t p = 0; p < report.panels.size(); ++p) {
    ChartPanel panel{.title = title_of(report, p, choice), .references = report.panels[p].lines};
    for (const ReferenceLine& line : panel.references) lines.add(line.value);
    for (const std::int64_t step : steps) panel.x.push_back(static_cast<double>(step));
    for (std::size_t g = 0; g < report.groups.size(); ++g) {
      const ReportCell* cell = report.cell(g, p, choice);
      if (cell == nullptr) continue;
      ChartLine line{report.groups[g].label, report.groups[g].ink, {}, {}, {}};
      std::vector<std::size_t> next(cell->runs.size(), 0);
      for (const std::int64_t step : steps) {
        std::vector<double> values;
        for (std::size_t i = 0; i < cell->runs.size(); ++i) {
          const ReportRun& run = report.runs[cell->runs[i]];
          if (next[i] < run.steps.size() && run.steps[next[i]] == step) values.push_back(run.loss[next[i]++]);
        }
        pool(line, values, false);
      }
      panel.lines.push_back(std::move(line));
    }
    thin(panel);
    chart.panels.push_back(std::move(panel));
  }
  for (const ReportRun* run : kept(report, choice))
    for (const double loss : run->loss) losses.add(loss);
  if (!lines.empty()) {
    chart.low = std::min(0.8 * lines.low(), losses.empty() ? lines.low() : losses.low());
    chart.high = 1.25 * lines.high();
  } else if (!losses.empty()) {
    const double margin = losses.high() > losses.low() ? 0.05 * (losses.high() - losses.low()) : 1;
    chart.low = losses.low() - margin;
    chart.high = losses.high() + margin;
  }
  return chart;
}

/// A quantity over depth at the last layer step of each run that did not diverge; at the first one where all did.
Chart depth_chart(const Report& report, const Setting& choice, std::string_view quantity) {
  Chart chart{.x_label = "block (0 is the embedding)", .x_name = "block"};
  const std::vector<const ReportRun*> within = kept(report, choice);
  const bool all_diverged = !within.empty() && within.front()->outcome == Outcome::diverged;
  std::set<std::int64_t> steps;
  Extent extent;
  for (std::size_t p = 0; p < report.panels.size(); ++p) {
    const auto depth = static_cast<std::size_t>(report.panels[p].depth);
    ChartPanel panel{.title = title_of(report, p, choice)};
    for (std::size_t block = 0; block <= depth; ++block) panel.x.push_back(static_cast<double>(block));
    std::vector<std::string> diverged;
    for (std::size_t g = 0; g < report.groups.size(); ++g) {
      const ReportCell* cell = report.cell(g, p, choice);
      if (cell == nullptr) continue;
      std::vector<std::vector<double>> profiles;
      for (const std::size_t index : cell->runs) {
        const ReportRun& run = report.runs[index];
        const auto found = run.layers.find(quantity);
        if (found == run.layers.end() || run.layer_steps.empty()) continue;
        if (run.outcome == Outcome::diverged && !all_diverged) continue;
        const std::size_t step = all_diverged ? 0 : run.layer_steps.size() - 1;
        std::vector<double> profile = run.profile(quantity, step);
        profile.insert(profile.begin(), found->second[step * run.rows()]);
        steps.insert(run.layer_steps[step]);
        for (const double value : profile) extent.add(value, true);
        profiles.push_back(std::move(profile));
      }
      const auto is_diverged = [&](std::size_t index) { return report.runs[index].outcome == Outcome::diverged; };
      if (!all_diverged && std::all_of(cell->runs.begin(), cell->runs.end(), is_diverged))
        diverged.push_back(report.groups[g].label);
      ChartLine line{report.groups[g].label, report.groups[g].ink, {}, {}, {}};
      for (std::size_t block = 0; block <= depth; ++block) {
        std::vector<double> values;
        for (const std::vector<double>& profile : profiles)
          if (block < profile.size()) values.push_back(profile[block]);
        pool(line, values, true);
      }
      panel.lines.push_back(std::move(line));
    }
    if (!diverged.empty()) panel.note = "diverged: " + listed(diverged);
    chart.panels.push_back(std::move(panel));
  }
  set_decades(chart, extent);
  const std::string when = steps.size() == 1 ? fmt::format("step {}", *steps.begin()) : "the last step of each run";
  chart.y_label = fmt::format("{} at {}; {}", words_of(quantity).label, when, seeds_words(report, "geometric mean"));
  chart.y_label[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(chart.y_label[0])));
  return chart;
}

/// A word for the name of a file: letters, digits, . + - = _ stay.
std::string file_word(const std::string& text) {
  std::string word;
  for (const char c : text) {
    const bool plain =
        std::isalnum(static_cast<unsigned char>(c)) != 0 || std::string_view(".+-=_").find(c) != std::string_view::npos;
    word += plain ? c : '_';
  }
  return word.substr(0, 80);
}

}  // namespace

const QuantityWords& words_of(std::string_view quantity) {
  const auto found = std::find_if(quantities.begin(), quantities.end(),
                                  [&](const QuantityWords& words) { return words.name == quantity; });
  if (found == quantities.end()) throw std::logic_error("no words for " + std::string(quantity));
  return *found;
}

std::vector<std::int64_t> all_steps(const Report& report) {
  std::set<std::int64_t> steps;
  for (const ReportRun& run : report.runs) steps.insert(run.steps.begin(), run.steps.end());
  return {steps.begin(), steps.end()};
}

std::vector<std::int64_t> all_layer_steps(const Report& report) {
  std::set<std::int64_t> steps, of_stopped;
  for (const ReportRun& run : report.runs) {
    const bool stopped = run.outcome == Outcome::diverged || run.outcome == Outcome::unfinished;
    (stopped ? of_stopped : steps).insert(run.layer_steps.begin(), run.layer_steps.end());
  }
  if (steps.empty()) steps = of_stopped;  // the step at which a run stopped would be a column of one run alone
  return {steps.begin(), steps.end()};
}

std::vector<Picture> static_pictures(const Report& report) {
  std::vector<Picture> pictures;
  for (const Setting& choice : report.choices()) {  // none where there is no run
    const std::string label = report.choice_label(choice);
    std::string ending;
    for (std::size_t axis = 0; axis < choice.size(); ++axis)
      ending +=
          fmt::format("-{}={}", file_word(report.axes[axis].name), file_word(report.axes[axis].values[choice[axis]]));
    const auto add = [&](const char* section, Chart chart) {
      chart.id = section + std::to_string(pictures.size());  // several may stand in one page
      chart.description = fmt::format("{}; {}: {}.", chart.y_label, report.group_axis.name, group_words(report));
      pictures.push_back({section, section + ending + ".svg", chart.title, label, svg(chart)});
    };
    add("loss", loss_chart(report, choice));
    const bool stream = report.measured("stream_grad_norm");
    if (stream || report.measured("grad_norm")) {
      Chart chart = depth_chart(report, choice, stream ? "stream_grad_norm" : "grad_norm");
      chart.title = "Where does the gradient vanish?";
      chart.names_left = true;
      chart.y_label += "; it flows from right to left";
      add("gradient", std::move(chart));
    }
    if (report.measured("stream_variance")) {
      Chart chart = depth_chart(report, choice, "stream_variance");
      chart.title = "Does the stream grow with depth?";
      add("variance", std::move(chart));
    }
    if (report.measured("update_ratio")) {
      Chart chart = depth_chart(report, choice, "update_ratio");
      chart.title = "How far does each layer move in one step?";
      chart.names_left = true;
      add("update", std::move(chart));
    }
  }
  return pictures;
}

}  // namespace gradflow
