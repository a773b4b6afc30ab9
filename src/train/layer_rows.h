#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "measure/detail_statistics.h"
#include "measure/stream_statistics.h"
#include "train/observer.h"

namespace gradflow {

/// What is known of a group of parameters (a sub-layer, a tensor) after a step; absent: it has no parameters, or
/// nothing was updated.
struct ParameterNumbers {
  std::optional<double> grad_norm, weight_norm, update_norm, update_ratio;
  std::optional<std::int64_t> nonfinite;
};

/// One row of layers.csv before it becomes text.
struct LayerRow {
  std::int64_t layer = 0;
  std::string sublayer;
  ParameterNumbers parameters;
  StreamStatistics stream;
  Details details;
};

/// A row for each segment of the stack, in the order of the forward pass. `stream` and `details` may be empty: not
/// measured.
std::vector<LayerRow> layer_rows(Stack& stack, const StepResult& result, const std::vector<StreamStatistics>& stream,
                                 const std::vector<Details>& details = {});

/// Where a measured column of layers.csv stands in a row.
struct MeasuredColumn {
  std::optional<double> StreamStatistics::*stream = nullptr;  ///< null: it is detail number `detail`
  std::size_t detail = 0;

  const std::optional<double>& of(const LayerRow& row) const {
    return stream != nullptr ? row.stream.*stream : row.details[detail];
  }
};

/// The column of that name; absent for names of no measured number.
std::optional<MeasuredColumn> measured_column(std::string_view name);
/// Its value in one row; absent for an empty cell and for names of no measured number.
std::optional<double> measured_value(const LayerRow& row, std::string_view name);

/// The numbers of each parameter tensor, in the order of the store's entries.
std::vector<ParameterNumbers> tensor_numbers(const StepResult& result);

/// Visits all numbers, for core/number_row.h.
template <class NumberRow, class Parameters>
void parameter_numbers_of(NumberRow& numbers, Parameters& p) {
  for (auto* value : {&p.grad_norm, &p.weight_norm, &p.update_norm, &p.update_ratio}) numbers(*value);
  numbers(p.nonfinite);
  static_assert(sizeof p == 5 * sizeof p.grad_norm, "a number is not visited");
}

/// Visits all numbers of a row that is no name, for core/number_row.h.
template <class NumberRow, class Row>
void numbers_of(NumberRow& numbers, Row& row) {
  parameter_numbers_of(numbers, row.parameters);
  auto& s = row.stream;
  for (auto* value : {&s.norm_input_rms, &s.stream_mean, &s.stream_variance, &s.stream_rms, &s.stream_grad_norm,
                      &s.branch_rms, &s.branch_ratio})
    numbers(*value);
  for (auto& value : row.details) numbers(value);
  static_assert(sizeof s == 7 * sizeof s.stream_rms, "a number is not visited");
}

/// √(g₁² + g₂² + …) over the rows of each block 1…depth: the profile that `summary.json` and the end-of-run table fit.
std::vector<double> block_grad_norms(const std::vector<LayerRow>& rows, std::int64_t depth);

}  // namespace gradflow
