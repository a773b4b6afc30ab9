#include "report/data_block.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "report/html.h"
#include "report/pictures.h"
#include "report/spike_table.h"

namespace gradflow {
namespace {

using Json = nlohmann::ordered_json;
using Steps = std::vector<std::int64_t>;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

std::string base64(std::span<const unsigned char> bytes) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t left = bytes.size() - i;
    const unsigned value = bytes[i] << 16U | (left > 1 ? bytes[i + 1] : 0U) << 8U | (left > 2 ? bytes[i + 2] : 0U);
    text += digits[value >> 18U];
    text += digits[value >> 12U & 63U];
    text += left > 1 ? digits[value >> 6U & 63U] : '=';
    text += left > 2 ? digits[value & 63U] : '=';
  }
  return text;
}

template <class Number>
std::string base64_of(std::span<const double> values) {
  std::vector<unsigned char> bytes(values.size() * sizeof(Number));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto number = static_cast<Number>(values[i]);
    std::memcpy(bytes.data() + i * sizeof(Number), &number, sizeof(Number));
    if constexpr (std::endian::native == std::endian::big)
      std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(i * sizeof(Number)),
                   bytes.begin() + static_cast<std::ptrdiff_t>((i + 1) * sizeof(Number)));
  }
  return base64(bytes);
}

/// Whether float32 holds it: not too large, and neither zero nor few-digit where it is small.
bool fits_float32(double value) {
  if (!std::isfinite(value) || value == 0) return true;
  const double size = std::abs(value);
  return size <= std::numeric_limits<float>::max() && size >= std::numeric_limits<float>::min();
}

bool needs_float64(const Report& report) {
  for (const RecordedRun& record : report.records)
    if (record.config.compute.dtype == Dtype::float64) return true;
  const auto all_fit = [](const std::vector<double>& values) {
    return std::all_of(values.begin(), values.end(), fits_float32);
  };
  for (const ReportRun& run : report.runs) {
    if (!all_fit(run.loss) || !all_fit(run.grad_norm) || !all_fit(run.eval_loss)) return true;
    for (const auto& [quantity, values] : run.layers)
      if (!all_fit(values)) return true;
  }
  return false;
}

/// The values at the chosen steps, nan where the run has none; nothing after its end.
std::vector<double> at_steps(const Steps& chosen, const Steps& own, const std::vector<double>& values,
                             std::size_t width) {
  std::vector<double> result;
  std::size_t next = 0;
  for (const std::int64_t step : chosen) {
    while (next < own.size() && own[next] < step) ++next;
    if (next == own.size()) break;
    for (std::size_t i = 0; i < width; ++i) result.push_back(own[next] == step ? values[next * width + i] : nan);
  }
  return result;
}

/// Every `by`-th, the first and the last.
Steps every(const Steps& steps, std::size_t by) {
  Steps kept;
  for (std::size_t i = 0; i < steps.size(); i += by) kept.push_back(steps[i]);
  if (!steps.empty() && kept.back() != steps.back()) kept.push_back(steps.back());
  return kept;
}

std::string ordinal(std::size_t number) {
  const std::size_t last = number % 10, two = number % 100;
  const char* ending = last == 1 && two != 11   ? "st"
                       : last == 2 && two != 12 ? "nd"
                       : last == 3 && two != 13 ? "rd"
                                                : "th";
  return std::to_string(number) + ending;
}

/// Writes one data block.
class Writer {
 public:
  Writer(const Report& report, std::size_t budget) : report_(report), float64_(needs_float64(report)), budget_(budget) {
    steps_ = all_steps(report);
    layer_steps_ = all_layer_steps(report);
    thin_curves();
    thin_layers();
  }

  DataBlock write() const {
    Json json = {{"format", float64_ ? 2 : 1},  {"study", report_.title},        {"steps", steps_},
                 {"layer_steps", layer_steps_}, {"sublayers", sublayer_names()}, {"groups", Json::array()},
                 {"panels", Json::array()},     {"choices", Json::array()},      {"learning_rates", Json::array()},
                 {"runs", Json::array()},       {"spikes", Json::array()}};
    for (const ReportGroup& group : report_.groups)
      json["groups"].push_back({{"label", group.label}, {"slot", group.ink.slot}, {"dashed", group.ink.dashed}});
    for (const ReportPanel& panel : report_.panels) {
      Json lines = Json::array();
      for (const ReferenceLine& line : panel.lines)
        lines.push_back({{"name", line.name}, {"value", line.value}, {"above", line.above}});
      json["panels"].push_back({{"label", panel.label}, {"depth", panel.depth}, {"lines", lines}});
    }
    for (const ReportAxis& axis : report_.axes)
      json["choices"].push_back({{"label", axis.name}, {"values", axis.values}});
    for (const ReportRun& run : report_.runs) json["runs"].push_back(run_json(run, json["learning_rates"]));
    for (std::size_t i = 0; i < std::min(report_.spikes.size(), most_spikes); ++i)
      json["spikes"].push_back(spike_json(report_.spikes[i]));
    return {escaped_script(json.dump(-1, ' ', false, Json::error_handler_t::replace)), thinned_};
  }

 private:
  std::size_t bytes(std::size_t numbers) const { return numbers * (float64_ ? 8 : 4) * 4 / 3; }

  void thin_curves() {
    std::size_t curves = 0;
    for (const ReportRun& run : report_.runs) curves += run.eval_loss.empty() ? 2 : 3;
    const std::size_t needed = bytes(curves * steps_.size());
    if (5 * needed <= 2 * budget_) return;
    const std::size_t by = (5 * needed + 2 * budget_ - 1) / std::max<std::size_t>(2 * budget_, 1);
    const Steps kept = every(steps_, by);
    std::set<std::int64_t> steps(kept.begin(), kept.end());
    for (std::size_t i = 0; i < std::min(report_.spikes.size(), most_spikes); ++i)
      steps.insert(report_.spikes[i].row.peak_step);
    steps_.assign(steps.begin(), steps.end());
    thinned_ = fmt::format("curves: every {} step and the peaks of spikes", ordinal(by));
  }

  void thin_layers() {
    std::size_t curves = 0, numbers = 0;  // of one layer step
    for (const ReportRun& run : report_.runs) {
      curves += run.eval_loss.empty() ? 2 : 3;
      numbers += run.layers.size() * run.rows();
    }
    const std::size_t taken = bytes(curves * steps_.size());
    const std::size_t left = budget_ > taken ? budget_ - taken : 0;
    if (bytes(numbers * layer_steps_.size()) <= left) return;
    const std::size_t most = std::max<std::size_t>(2, left / std::max<std::size_t>(bytes(numbers), 1));
    const std::size_t by = most < 3 ? layer_steps_.size() : (layer_steps_.size() - 2) / (most - 1) + 1;
    layer_steps_ = every(layer_steps_, std::max<std::size_t>(by, 1));
    thinned_ += (thinned_.empty() ? "" : "; ") + std::string("layers: ") +
                (layer_steps_.size() <= 2 ? "the first and the last recorded step"
                                          : fmt::format("every {} recorded step", ordinal(by)));
  }

  std::vector<std::string> sublayer_names() const {
    std::size_t most = 1;
    for (const ReportRun& run : report_.runs) most = std::max(most, run.sublayers);
    return most > 1 ? std::vector<std::string>{"attention", "feed-forward"} : std::vector<std::string>{"block"};
  }

  std::string pack(const std::vector<double>& values) const {
    return float64_ ? base64_float64(values) : base64_float32(values);
  }

  Json run_json(const ReportRun& run, Json& learning_rates) const {
    Json json = {{"group", run.group},
                 {"panel", run.panel},
                 {"choice", run.choice},
                 {"seed", run.seed},
                 {"verdict", name_of(run.outcome)},
                 {"sublayers", run.sublayers},
                 {"loss", pack(at_steps(steps_, run.steps, run.loss, 1))},
                 {"grad_norm", pack(at_steps(steps_, run.steps, run.grad_norm, 1))}};
    if (!run.eval_loss.empty()) json["eval_loss"] = pack(at_steps(steps_, run.steps, run.eval_loss, 1));
    // Most runs share their schedule with many others.
    const std::string rate = pack(at_steps(steps_, run.steps, run.learning_rate, 1));
    const auto known = std::find(learning_rates.begin(), learning_rates.end(), rate);
    json["learning_rate"] = known - learning_rates.begin();
    if (known == learning_rates.end()) learning_rates.push_back(rate);
    json["layers"] = Json::object();
    for (const auto& [quantity, values] : run.layers)
      json["layers"][std::string(quantity)] = pack(at_steps(layer_steps_, run.layer_steps, values, run.rows()));
    return json;
  }

  Json spike_json(const ReportSpike& spike) const {
    const ReportRun& run = report_.runs[spike.run];
    return {{"group", run.group},
            {"panel", run.panel},
            {"choice", run.choice},
            {"seed", run.seed},
            {"series", name_of(spike.row.series)},
            {"peak_step", spike.row.peak_step},
            {"peak", std::isfinite(spike.row.peak) ? Json(spike.row.peak) : Json()}};
  }

  const Report& report_;
  bool float64_;
  std::size_t budget_;
  Steps steps_, layer_steps_;
  std::string thinned_;
};

}  // namespace

std::string base64_float32(std::span<const double> values) {
  std::vector<double> within(values.begin(), values.end());
  // What does not fit would be undefined behaviour to convert; format 2 is there for it.
  for (double& value : within)
    if (std::isfinite(value))
      value = std::clamp<double>(value, -std::numeric_limits<float>::max(), std::numeric_limits<float>::max());
  return base64_of<float>(within);
}

std::string base64_float64(std::span<const double> values) { return base64_of<double>(values); }

DataBlock data_block(const Report& report, std::size_t other_bytes, std::size_t limit) {
  return Writer(report, limit > other_bytes ? limit - other_bytes : 0).write();
}

}  // namespace gradflow
