#include "train/layer_rows.h"

#include <cmath>
#include <utility>

namespace gradflow {
namespace {

/// `update_before` and `update_squares` are null when nothing was updated.
ParameterNumbers numbers(double gradient_squares, double weight_squares, const double* before_squares,
                         const double* update_squares, std::int64_t nonfinite) {
  ParameterNumbers row;
  row.grad_norm = std::sqrt(gradient_squares);
  row.weight_norm = std::sqrt(weight_squares);
  row.nonfinite = nonfinite;
  if (update_squares != nullptr) {
    row.update_norm = std::sqrt(*update_squares);
    if (*before_squares != 0) row.update_ratio = std::sqrt(*update_squares / *before_squares);
  }
  return row;
}

}  // namespace

std::vector<LayerRow> layer_rows(Stack& stack, const StepResult& result, const std::vector<StreamStatistics>& stream,
                                 const std::vector<Details>& details) {
  const ParameterStore& store = stack.store();
  const std::vector<double> gradient = per_segment(store, result.gradients.squares);
  const std::vector<double> weight = per_segment(store, result.weight_squares);
  std::vector<double> before, update;
  if (result.update) {
    before = per_segment(store, result.update->before_squares);
    update = per_segment(store, result.update->update_squares);
  }
  std::vector<std::int64_t> nonfinite(store.segment_count());
  for (std::size_t e = 0; e < store.entries().size(); ++e)
    nonfinite[store.entries()[e].segment] += result.gradients.nonfinite[e];

  std::vector<LayerRow> rows;
  rows.reserve(store.segment_count());
  for (std::size_t s = 0; s < store.segment_count(); ++s) {
    const SegmentSpec& spec = stack.layout().segments[s];
    LayerRow row{.layer = spec.layer, .sublayer = spec.sublayer};
    if (!spec.parameters.empty())
      row.parameters = numbers(gradient[s], weight[s], before.empty() ? nullptr : &before[s],
                               update.empty() ? nullptr : &update[s], nonfinite[s]);
    if (!stream.empty()) row.stream = stream[s];
    if (!details.empty()) row.details = details[s];
    rows.push_back(std::move(row));
  }
  return rows;
}

std::optional<MeasuredColumn> measured_column(std::string_view name) {
  constexpr std::pair<std::string_view, std::optional<double> StreamStatistics::*> columns[] = {
      {"norm_input_rms", &StreamStatistics::norm_input_rms},     {"stream_mean", &StreamStatistics::stream_mean},
      {"stream_variance", &StreamStatistics::stream_variance},   {"stream_rms", &StreamStatistics::stream_rms},
      {"stream_grad_norm", &StreamStatistics::stream_grad_norm}, {"branch_rms", &StreamStatistics::branch_rms},
      {"branch_ratio", &StreamStatistics::branch_ratio}};
  for (const auto& [column, member] : columns)
    if (column == name) return MeasuredColumn{.stream = member};
  const std::optional<Detail> detail = choice_named<Detail>(name);
  return detail ? std::optional(MeasuredColumn{.detail = static_cast<std::size_t>(*detail)}) : std::nullopt;
}

std::optional<double> measured_value(const LayerRow& row, std::string_view name) {
  const std::optional<MeasuredColumn> column = measured_column(name);
  return column ? column->of(row) : std::nullopt;
}

std::vector<ParameterNumbers> tensor_numbers(const StepResult& result) {
  std::vector<ParameterNumbers> rows;
  rows.reserve(result.weight_squares.size());
  for (std::size_t e = 0; e < result.weight_squares.size(); ++e)
    rows.push_back(numbers(result.gradients.squares[e], result.weight_squares[e],
                           result.update ? &result.update->before_squares[e] : nullptr,
                           result.update ? &result.update->update_squares[e] : nullptr, result.gradients.nonfinite[e]));
  return rows;
}

std::vector<double> block_grad_norms(const std::vector<LayerRow>& rows, std::int64_t depth) {
  std::vector<double> squares(static_cast<std::size_t>(depth));
  for (const LayerRow& row : rows)
    if (row.layer >= 1 && row.layer <= depth && row.parameters.grad_norm)
      squares[static_cast<std::size_t>(row.layer - 1)] += *row.parameters.grad_norm * *row.parameters.grad_norm;
  for (double& value : squares) value = std::sqrt(value);
  return squares;
}

}  // namespace gradflow
