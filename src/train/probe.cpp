#include "train/probe.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "config/quantities.h"
#include "measure/detail_statistics.h"
#include "measure/on_demand.h"
#include "measure/store_sums.h"
#include "measure/stream_statistics.h"
#include "train/layer_rows.h"

namespace gradflow {
namespace {

std::optional<double> value_of(const LayerRow& row, std::string_view quantity) {
  if (quantity == "grad_norm") return row.parameters.grad_norm;
  if (quantity == "weight_norm") return row.parameters.weight_norm;
  if (quantity == "nonfinite" && row.parameters.nonfinite) return static_cast<double>(*row.parameters.nonfinite);
  return measured_value(row, quantity);
}

/// E‖Wz‖² = out·std²·‖z‖²: the elements of an orthonormal matrix are that large.
double initial_std(const ParameterSpec& parameter) {
  if (parameter.fill.distribution != Distribution::orthogonal) return parameter.fill.std;
  return parameter.fill.std / std::sqrt(static_cast<double>(std::max(parameter.shape.at(0), parameter.shape.at(1))));
}

std::vector<ScalePrediction> predictions(const Config& config, const Layout& layout, const LayerRow& embedding) {
  std::map<std::string, double> stds;
  for (const SegmentSpec& segment : layout.segments)
    for (const ParameterSpec& parameter : segment.parameters)
      if (parameter.decays()) stds[parameter.name] = initial_std(parameter);
  const double rms = embedding.stream.stream_rms.value();
  return predicted_scales(config, rms * rms, [&](const std::string& name) { return stds.at(name); });
}

}  // namespace

std::vector<ProbedNumber> probe_stack(const Config& config, std::span<const Batch> batches, const Batch& evaluation,
                                      at::Device device) {
  const std::set<std::string_view> asked_for = quantities_asked_for(config.record.quantities);
  std::set<Detail> wanted;
  for (const std::string_view name : asked_for)
    if (const auto detail = choice_named<Detail>(name)) wanted.insert(*detail);

  Stack stack(config, device);
  StreamMeter streams(stack.layout(), device);
  DetailMeter details(config, stack.layout(), std::move(wanted));
  Watcher* const watchers[] = {&streams, &details};
  for (std::size_t micro = 0; micro < batches.size(); ++micro) {
    const Pass pass{
        .batch = &batches[micro], .micro = static_cast<std::int64_t>(micro), .recompute = config.compute.recompute};
    stack.forward(pass, watchers);
    stack.backward(pass, 1 / static_cast<double>(batches.size()), watchers);
  }
  StepResult step;
  step.gradients = gradient_sums(stack.store());
  step.weight_squares = entry_squares(stack.store(), stack.store().values());

  const std::vector<LayerRow> rows = layer_rows(stack, step, streams.statistics(), details.details());
  const std::vector<ScalePrediction> scales = predictions(config, stack.layout(), rows.front());
  std::vector<ProbedNumber> numbers;
  for (const LayerRow& row : rows)
    for (const Quantity& quantity : measured_quantities()) {
      const std::optional<double> value =
          asked_for.contains(quantity.name) ? value_of(row, quantity.name) : std::nullopt;
      if (!value) continue;
      numbers.push_back({row.layer, row.sublayer, quantity.name, *value, std::nullopt});
      for (const ScalePrediction& scale : scales)
        if (scale.layer == row.layer && scale.sublayer == row.sublayer)
          numbers.back().predicted = scale.of(quantity.name);
    }
  if (const std::set<std::string_view> on_demand = on_demand_among(asked_for); !on_demand.empty())
    for (const StackNumber& number : OnDemandMeter(config, evaluation, device, on_demand).measure(stack.store(), 0))
      numbers.push_back({number.layer, "", number.quantity, number.value, std::nullopt});
  return numbers;
}

}  // namespace gradflow
