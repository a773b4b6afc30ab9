#include "claims/run_statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "analysis/profile.h"
#include "analysis/run_series.h"
#include "config/quantities.h"
#include "core/error.h"
#include "core/statistics.h"
#include "output/csv_rows.h"

namespace gradflow {
namespace {

using K = StatisticKind;

double finite(double value, std::string_view what) {
  if (!std::isfinite(value)) throw Error(fmt::format("{} is not a finite number", what));
  return value;
}

double number(const RecordedRun& run, std::string_view pointer) {
  const std::optional<double> value = run.number(pointer);
  if (!value) throw Error(fmt::format("{} of summary.json is empty", pointer.substr(1)));
  return *value;
}

double final_loss(const RecordedRun& run) {
  if (run.status == RunStatus::diverged) throw Error("the run stopped at a non-finite value and has no final loss");
  return number(run, "/final_loss");
}

/// A run may also go on at a non-finite loss: that is a stop too.
double capped_loss(const RecordedRun& run) {
  const double first = number(run, "/first_loss");
  const std::optional<double> last = run.final_loss();
  return run.status == RunStatus::diverged || !last ? first : std::min(*last, first);
}

double trains(const RecordedRun& run) {
  const double border = 0.5 * (number(run, "/entropy_rate") + number(run, "/unigram_entropy"));
  return run.status != RunStatus::diverged && run.final_loss() && *run.final_loss() < border ? 1 : 0;
}

double loss_noise(const Statistic& leaf, const RecordedRun& run) {
  const std::string_view column = "loss";
  const StepSeries series = read_steps(run, {&column, 1});
  std::vector<double> differences;
  for (std::size_t i = 1; i < series.steps.size(); ++i)
    if (static_cast<double>(series.steps[i - 1]) >= leaf.from)
      differences.push_back(series.columns[0][i] - series.columns[0][i - 1]);
  const std::optional<double> deviation = sample_std(differences);
  if (!deviation) throw Error("fewer than three losses to take differences of");
  return finite(*deviation / std::sqrt(2.0), "the noise of the loss");
}

/// Where a step's row stands in a table.
std::size_t row_of_step(const std::vector<std::int64_t>& steps, const Statistic& leaf, const RecordedRun& run) {
  const std::int64_t wanted = leaf.step.in(run.config.train.steps);
  const auto found = std::find(steps.begin(), steps.end(), wanted);
  if (found == steps.end()) throw Error(fmt::format("step {} has no row; the run ended before it", wanted));
  return static_cast<std::size_t>(found - steps.begin());
}

double step_value(const Statistic& leaf, const RecordedRun& run) {
  const std::string_view column = leaf.column;
  const StepSeries series = read_steps(run, {&column, 1});
  return finite(series.columns[0][row_of_step(series.steps, leaf, run)], leaf.column);
}

/// The column at the step, one value for each block.
std::vector<double> blocks(const Statistic& leaf, const RecordedRun& run) {
  const std::string_view column = leaf.column;
  const LayerSeries series = read_layers(run, {&column, 1});
  const std::size_t step = row_of_step(series.steps, leaf, run);
  std::vector<std::optional<double>> found(static_cast<std::size_t>(run.config.model.depth));
  for (std::size_t row = 0; row < series.rows.size(); ++row) {
    const SubLayerName& name = series.rows[row];
    if (name.layer < 1 || name.layer > run.config.model.depth) continue;
    // Without a sub-layer the last of the block stays, where the stream leaves it.
    if (leaf.sublayer.empty() || name.sublayer == leaf.sublayer)
      found[static_cast<std::size_t>(name.layer - 1)] = series.value(0, step, row);
  }
  std::vector<double> values;
  for (std::size_t block = 0; block < found.size(); ++block) {
    if (!found[block]) throw Error(fmt::format("block {} has no sub-layer {}", block + 1, leaf.sublayer));
    values.push_back(finite(*found[block], fmt::format("{} of block {}", leaf.column, block + 1)));
  }
  return values;
}

double summary_of(std::span<const double> values, const std::string& word) {
  if (word == "mean") return *mean(values);
  if (word == "median") return *median(values);
  return word == "smallest" ? *std::min_element(values.begin(), values.end())
                            : *std::max_element(values.begin(), values.end());
}

ProfileFit profile(const Statistic& leaf, const RecordedRun& run) {
  const Flow flow = leaf.column.find("grad") == std::string::npos ? Flow::activation : Flow::gradient;
  return fit_profile(blocks(leaf, run), flow);
}

double slope_of(const std::optional<LineFit>& line) {
  if (!line) throw Error("fewer than two blocks have a value with a logarithm");
  return line->slope;
}

/// Ranks from 1, equal values share theirs.
std::vector<double> ranks(std::span<const double> values) {
  std::vector<double> result;
  for (const double value : values) {
    const auto below = std::count_if(values.begin(), values.end(), [&](double v) { return v < value; });
    const auto equal = std::count(values.begin(), values.end(), value);
    result.push_back(static_cast<double>(below) + 0.5 * static_cast<double>(equal + 1));
  }
  return result;
}

double rank_correlation_with_depth(std::span<const double> values) {
  std::vector<double> depth(values.size());
  std::iota(depth.begin(), depth.end(), 1.0);
  const std::vector<double> ranked = ranks(values);
  const auto slope = fit_line(depth, ranked), back = fit_line(ranked, depth);
  if (!slope || !back) throw Error("the column is the same in every block, or there is only one");
  return std::copysign(std::sqrt(slope->slope * back->slope), slope->slope);
}

double tensor_value(const Statistic& leaf, const RecordedRun& run) {
  const std::int64_t step = leaf.step.in(run.config.train.steps);
  const std::string name = fmt::format("block.{}.{}", leaf.block.in(run.config.model.depth), leaf.tensor);
  std::optional<double> value;
  const std::array<std::string_view, 3> columns{"step", "tensor", leaf.column};
  read_csv_rows(run.file("tensors.csv"), tensors_columns(), columns, [&](const CsvRow& row) {
    if (row.text(1) == name && row.integer(0) == step) value = row.number(2);
  });
  if (!value) throw Error(fmt::format("tensors.csv has no {} at step {}", name, step));
  return finite(*value, fmt::format("{} of {}", leaf.column, name));
}

double quantity_value(const Statistic& leaf, const RecordedRun& run, std::optional<std::int64_t> layer) {
  const std::int64_t step = leaf.step.in(run.config.train.steps);
  std::optional<double> value;
  constexpr std::array<std::string_view, 4> columns{"step", "layer", "quantity", "value"};
  read_csv_rows(run.file("quantities.csv"), quantities_columns(), columns, [&](const CsvRow& row) {
    const bool here = layer ? !row.empty(1) && row.integer(1) == *layer : row.empty(1);
    if (row.text(2) == leaf.quantity && row.integer(0) == step && here) value = row.number(3);
  });
  if (!value) throw Error(fmt::format("quantities.csv has no {} at step {}", leaf.quantity, step));
  return finite(*value, leaf.quantity);
}

bool is_recorded(const RecordConfig& record, std::string_view name) {
  constexpr std::array<std::string_view, 5> always{"grad_norm", "weight_norm", "update_norm", "update_ratio",
                                                   "nonfinite"};
  if (std::find(always.begin(), always.end(), name) != always.end()) return true;
  const Quantity* quantity = find_quantity(name);
  return std::any_of(record.quantities.begin(), record.quantities.end(), [&](const std::string& word) {
    if (word == name) return true;
    if (quantity == nullptr) return false;
    if (word == "standard") return quantity->set == QuantitySet::standard;
    return word == "all" && quantity->set != QuantitySet::on_demand;
  });
}

/// Whether a table with a row every `every` steps has one of this step; the first and the last always have.
bool has_row(std::int64_t step, std::int64_t every, std::int64_t last) {
  return step == 1 || step == last || (step < last && every > 0 && step % every == 0);
}

std::string why_no_row(const Statistic& leaf, const TrainConfig& train, std::int64_t every, std::string_view key) {
  const std::int64_t step = leaf.step.in(train.steps);
  if (step > train.steps) return fmt::format("step {} is beyond train.steps {}", step, train.steps);
  if (has_row(step, every, train.steps)) return "";
  return fmt::format("step {} has no row with {} {}; write a divisor of {} there", step, key, every, step);
}

std::string why_no_block(const Statistic& leaf, const ModelConfig& model) {
  const std::int64_t block = leaf.block.in(model.depth);
  return block <= model.depth ? "" : fmt::format("block {} is beyond model.depth {}", block, model.depth);
}

std::string first_of(std::initializer_list<std::string> faults) {
  for (const std::string& fault : faults)
    if (!fault.empty()) return fault;
  return "";
}

bool reads_one_block(K kind) { return kind == K::layer_value || kind == K::tensor_value; }

}  // namespace

std::string why_not_recorded(const Statistic& leaf, const Config& config) {
  const auto layer_row = [&] {
    return why_no_row(leaf, config.train, config.record.layers_every, "record.layers_every");
  };
  const std::string block = reads_one_block(leaf.kind) ? why_no_block(leaf, config.model) : "";
  switch (leaf.kind) {
    case K::step_value: return why_no_row(leaf, config.train, config.record.steps_every, "record.steps_every");
    case K::layer_value:
    case K::over_layers:
    case K::first_last_ratio:
    case K::depth_rate:
    case K::depth_exponent:
    case K::depth_correlation:
      if (!is_recorded(config.record, leaf.column))
        return fmt::format("column {} is not measured; add it to record.quantities", leaf.column);
      return first_of({block, layer_row()});
    case K::tensor_value:
      if (!config.record.tensors) return "tensors.csv is not written; set record.tensors to true";
      return first_of({block, layer_row()});
    case K::quantity_value:
      if (!is_recorded(config.record, leaf.quantity))
        return fmt::format("{} is not measured; add it to record.quantities", leaf.quantity);
      return layer_row();
    default: return "";
  }
}

NumberSource source_of(const Statistic& leaf, const Config& config) {
  const std::string step = std::to_string(leaf.step.in(config.train.steps));
  const std::string block = std::to_string(leaf.block.in(config.model.depth));
  switch (leaf.kind) {
    case K::final_loss:
    case K::trains: return {"summary.json", "final_loss", "", ""};
    case K::capped_loss: return {"summary.json", "final_loss; first_loss", "", ""};
    case K::first_loss: return {"summary.json", "first_loss", "", ""};
    case K::above_unigram: return {"summary.json", "final_loss; first_loss; unigram_entropy", "", ""};
    case K::verdict_is: return {"summary.json", "verdict", "", ""};
    case K::spike_count: return {"summary.json", "spikes/" + leaf.series, "", ""};
    case K::loss_noise: return {"steps.csv", "loss", fmt::format("{} on", leaf.from), ""};
    case K::step_value: return {"steps.csv", leaf.column, step, ""};
    case K::layer_value: return {"layers.csv", leaf.column, step, block};
    case K::over_layers:
    case K::depth_rate:
    case K::depth_exponent:
    case K::depth_correlation: return {"layers.csv", leaf.column, step, "all"};
    case K::first_last_ratio: return {"layers.csv", leaf.column, step, fmt::format("1; {}", config.model.depth)};
    case K::tensor_value: return {"tensors.csv", leaf.column, step, fmt::format("block.{}.{}", block, leaf.tensor)};
    case K::quantity_value: return {"quantities.csv", leaf.quantity, step, leaf.has_block ? block : ""};
    default: throw std::logic_error("not a leaf");
  }
}

double read_leaf(const Statistic& leaf, const RecordedRun& run) {
  switch (leaf.kind) {
    case K::final_loss: return final_loss(run);
    case K::capped_loss: return capped_loss(run);
    case K::first_loss: return number(run, "/first_loss");
    case K::above_unigram: return capped_loss(run) - number(run, "/unigram_entropy");
    case K::verdict_is: return run.verdict() && name_of(*run.verdict()) == leaf.verdict ? 1 : 0;
    case K::trains: return trains(run);
    case K::spike_count: return number(run, "/spikes/" + leaf.series);
    case K::loss_noise: return loss_noise(leaf, run);
    case K::step_value: return step_value(leaf, run);
    case K::layer_value: {
      const std::vector<double> values = blocks(leaf, run);
      return values[static_cast<std::size_t>(leaf.block.in(run.config.model.depth) - 1)];
    }
    case K::over_layers: return summary_of(blocks(leaf, run), leaf.summary);
    case K::first_last_ratio: {
      const std::optional<double> ratio = profile(leaf, run).ratio;
      if (!ratio) throw Error(fmt::format("{} of the last block is zero", leaf.column));
      return *ratio;
    }
    case K::depth_rate: return slope_of(profile(leaf, run).exponential);
    case K::depth_exponent: return slope_of(profile(leaf, run).power);
    case K::depth_correlation: return rank_correlation_with_depth(blocks(leaf, run));
    case K::tensor_value: return tensor_value(leaf, run);
    case K::quantity_value:
      return quantity_value(leaf, run,
                            leaf.has_block ? std::optional(leaf.block.in(run.config.model.depth)) : std::nullopt);
    default: throw std::logic_error("not a leaf");
  }
}

}  // namespace gradflow
