#include "claims/evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "claims/run_statistics.h"
#include "config/text.h"
#include "core/error.h"
#include "core/statistics.h"

namespace gradflow {
namespace {

using K = StatisticKind;
using Cells = std::vector<std::size_t>;

bool meets(const Config& config, const Condition& condition) { return condition.key->value(config) == condition.value; }

/// What a key holds in the run, as a number. Throws Error when it is none.
double number_of(const Field& key, const Config& config) {
  const Json value = key.value(config);
  if (!value.is_number()) throw Error(fmt::format("{} is {}, no number", key.key(), value.dump()));
  return value.get<double>();
}

/// One walk through a statistic. The runs that are left are those of the seed which meet every condition so far.
class Evaluation {
 public:
  Evaluation(std::span<const Config> cells, const LeafReader& read) : cells_(cells), read_(read) {}

  double value(const Statistic& statistic, Cells left) const {
    for (const Condition& condition : statistic.where)
      std::erase_if(left, [&](std::size_t cell) { return !meets(cells_[cell], condition); });
    if (row_of(statistic.kind).operands == 0) return leaf(statistic, left);
    if (statistic.over != nullptr) return over_key(statistic, left);
    return combined(statistic, left);
  }

 private:
  double leaf(const Statistic& statistic, const Cells& left) const {
    if (left.empty()) throw Error("no run of the experiment meets every \"where\"; write values that it has");
    if (left.size() > 1)
      throw Error(
          fmt::format("{} runs of a seed meet every \"where\", which differ in {}; name one of their values "
                      "in \"where\"",
                      left.size(), differing_key(left)));
    return read_(statistic, left.front());
  }

  std::string_view differing_key(const Cells& left) const {
    for (const auto& field : fields())
      if (field->value(cells_[left[0]]) != field->value(cells_[left[1]])) return field->key();
    return "nothing";
  }

  double combined(const Statistic& statistic, const Cells& left) const {
    const double first = value(statistic.of[0], left);
    switch (statistic.kind) {
      case K::logarithm:
        if (first <= 0) throw Error(fmt::format("{} has no logarithm", first));
        return std::log(first);
      case K::square: return first * first;
      case K::absolute: return std::abs(first);
      case K::difference: return first - value(statistic.of[1], left);
      case K::ratio: {
        const double second = value(statistic.of[1], left);
        if (second == 0) throw Error("the second operand of a ratio is zero");
        return first / second;
      }
      default: throw std::logic_error("no combination");
    }
  }

  /// The operand at each value of a key, in the order of the values.
  struct Curve {
    std::vector<double> x, y;
  };

  Curve curve(const Statistic& statistic, const Cells& left) const {
    std::set<double> values;
    for (const std::size_t cell : left) values.insert(number_of(*statistic.over, cells_[cell]));
    Curve result;
    for (const double at : values) {
      if (statistic.kind == K::slope && at < statistic.from) continue;
      Cells here = left;
      std::erase_if(here, [&](std::size_t cell) { return number_of(*statistic.over, cells_[cell]) != at; });
      result.x.push_back(at);
      result.y.push_back(value(statistic.of[0], here));
    }
    if (result.x.size() < 2)
      throw Error(fmt::format("{} takes {} value{} here; the experiment must vary it", statistic.over->key(),
                              result.x.size(), result.x.size() == 1 ? "" : "s"));
    return result;
  }

  double over_key(const Statistic& statistic, const Cells& left) const {
    const Curve points = curve(statistic, left);
    const double least = *std::min_element(points.y.begin(), points.y.end());
    switch (statistic.kind) {
      case K::slope: return slope(statistic, points);
      case K::sensitivity: return *mean(points.y) - least;
      case K::best_key: return best_key(points);
      case K::largest_working: return largest_working(points);
      case K::smallest: return least;
      case K::largest: return *std::max_element(points.y.begin(), points.y.end());
      case K::average: return *mean(points.y);
      default: throw std::logic_error("nothing over a key");
    }
  }

  static double slope(const Statistic& statistic, Curve points) {
    const auto take_log = [](std::vector<double>& values) {
      for (double& value : values) {
        if (value <= 0) throw Error(fmt::format("{} has no logarithm", value));
        value = std::log(value);
      }
    };
    if (statistic.log_x) take_log(points.x);
    if (statistic.log_y) take_log(points.y);
    return fit_line(points.x, points.y)->slope;
  }

  /// The vertex of the parabola through the smallest point and its neighbours over ln x; the point itself at an end.
  static double best_key(const Curve& points) {
    const auto best = static_cast<std::size_t>(std::min_element(points.y.begin(), points.y.end()) - points.y.begin());
    if (best == 0 || best + 1 == points.x.size()) return points.x[best];
    if (points.x[best - 1] <= 0) throw Error(fmt::format("{} has no logarithm", points.x[best - 1]));
    const double a = std::log(points.x[best - 1]), b = std::log(points.x[best]), c = std::log(points.x[best + 1]);
    const double rise_left = points.y[best - 1] - points.y[best], rise_right = points.y[best + 1] - points.y[best];
    const double denominator = (b - a) * rise_right + (c - b) * rise_left;
    if (denominator == 0) return points.x[best];
    return std::exp(b + 0.5 * ((c - b) * (c - b) * rise_left - (b - a) * (b - a) * rise_right) / denominator);
  }

  static double largest_working(const Curve& points) {
    std::optional<double> largest;
    for (std::size_t i = 0; i < points.x.size(); ++i)
      if (points.y[i] > 0.5) largest = points.x[i];
    if (!largest) throw Error("no value of the key works");
    return *largest;
  }

  std::span<const Config> cells_;
  const LeafReader& read_;
};

Cells cells_of_seed(std::span<const Config> cells, std::int64_t seed) {
  Cells left;
  for (std::size_t cell = 0; cell < cells.size(); ++cell)
    if (cells[cell].seed == seed) left.push_back(cell);
  return left;
}

/// A key named by "where" that the experiment gives one value only would do nothing, or leave nothing.
void check_keys(const Statistic& statistic, std::span<const Config> cells, std::string_view file, Faults& faults) {
  for (const Condition& condition : statistic.where)
    if (std::none_of(cells.begin(), cells.end(), [&](const Config& config) { return meets(config, condition); }))
      faults.add(line_of(file, statistic.line), fmt::format("{}.where.{}", statistic.path, condition.key->key()),
                 fmt::format("{} is no value of the experiment", condition.value.dump()));
  for (const Statistic& operand : statistic.of) check_keys(operand, cells, file, faults);
}

}  // namespace

std::vector<std::int64_t> seeds_of(std::span<const Config> cells) {
  std::set<std::int64_t> seeds;
  for (const Config& cell : cells) seeds.insert(cell.seed);
  return {seeds.begin(), seeds.end()};
}

double evaluate(const Statistic& statistic, std::span<const Config> cells, std::int64_t seed, const LeafReader& read) {
  return Evaluation(cells, read).value(statistic, cells_of_seed(cells, seed));
}

void check_statistic(const Statistic& statistic, std::span<const Config> cells, std::string_view file, Faults& faults) {
  check_keys(statistic, cells, file, faults);
  if (faults.concern_keys("statistic")) return;
  const Origin origin = line_of(file, statistic.line);
  for (const std::int64_t seed : seeds_of(cells)) {
    std::set<std::string> reasons;
    try {
      // A number that no combination refuses stands for every leaf.
      evaluate(statistic, cells, seed, [&](const Statistic& leaf, std::size_t cell) {
        if (const std::string reason = why_not_recorded(leaf, cells[cell]); !reason.empty())
          reasons.insert(fmt::format("{}: {}", leaf.path, reason));
        return 1.0;
      });
    } catch (const Error& error) {
      reasons.insert(fmt::format("statistic: seed {}: {}", seed, error.lines().front()));
    }
    for (const std::string& reason : reasons) faults.add(origin, "", reason);
    if (!reasons.empty()) return;
  }
}

}  // namespace gradflow
