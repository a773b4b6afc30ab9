#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "claims/object_reader.h"

namespace gradflow {

// Checks of single operators, products of matrices and closed forms: claims that need no training. Here is what a claim
// file may write; checks/ computes it.

enum class OperatorKind {
  power,
  deepnorm_constant,
  deepnorm_std,
  matrix_product,
  residual_product,
  cancelled_branch,
  norm_shift,
  norm_scale,
  norm_batch_dependence,
  norm_future_leak,
  norm_evaluation_batch,
  norm_padding,
  norm_gradient,
  batch_variance,
  batch_of_one,
  rms_identity,
  norm_distance,
  sum_formula,
  scaled_sum,
  uniform_attention,
  stack_gradient,
  mode_gap,
  model_update,
};

/// An argument: a number, or one of some words.
struct OperatorArgument {
  std::string_view name;
  std::vector<std::string_view> words;  ///< empty: a number
  double least = 0;                     ///< of a number
  bool whole = false;                   ///< a number without decimals
  double below = std::numeric_limits<double>::infinity();
};

struct OperatorRow {
  OperatorKind kind;
  std::string_view name;
  std::vector<OperatorArgument> arguments;  ///< all must be written
  bool draws;                               ///< takes seeds; else its number is the same for every one
  std::string_view meaning;
};

std::span<const OperatorRow> operators();
/// The checks as a Markdown table (README).
std::string operators_table();

/// One check as a claim file asks for it.
struct OperatorCheck {
  const OperatorRow* row = nullptr;
  std::map<std::string, double, std::less<>> numbers;
  std::map<std::string, std::string, std::less<>> words;
  std::vector<OperatorCheck> relative_to;  ///< at most one: the number is divided by that check's

  double number(std::string_view name) const { return numbers.find(name)->second; }
  std::int64_t count(std::string_view name) const { return static_cast<std::int64_t>(number(name)); }
  const std::string& word(std::string_view name) const { return words.find(name)->second; }
  bool operator==(const OperatorCheck&) const = default;
};

/// Reads {"name": …, arguments}; "relative_to" holds the arguments that another check has, by which it is divided.
OperatorCheck read_operator(const JsonValue& value, const std::string& path, std::string_view file, Faults& faults);

}  // namespace gradflow
