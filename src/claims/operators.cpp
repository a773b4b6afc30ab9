#include "claims/operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "config/choices.h"
#include "config/text.h"

namespace gradflow {
namespace {

using Words = std::vector<std::string_view>;

template <class Choice>
Words all_names() {
  const auto names = names_of(Choice{});
  return Words(names.begin(), names.end());
}

OperatorArgument count(std::string_view name, double least = 1) { return {name, {}, least, true}; }
OperatorArgument number(std::string_view name, double least) { return {name, {}, least, false}; }

const std::vector<OperatorRow>& rows() {
  using K = OperatorKind;
  static const OperatorArgument norm{"norm", all_names<Norm>()};
  static const OperatorArgument placement{"placement", all_names<Placement>()};
  static const std::vector<OperatorRow> all{
      {K::power, "power", {number("base", 0), count("exponent")}, false, "base to the power of exponent"},
      {K::deepnorm_constant,
       "deepnorm_constant",
       {{"constant", {"alpha", "beta"}}, count("depth")},
       false,
       "α or β as the program takes it for `deepnorm` of that depth"},
      {K::deepnorm_std,
       "deepnorm_std",
       {{"matrix", {"attention.q", "attention.k", "attention.v", "attention.out", "ffn.in", "ffn.out"}},
        count("depth")},
       false,
       "initial std of a matrix under `deepnorm`, divided by that under `post`"},
      {K::matrix_product,
       "matrix_product",
       {{"matrix", {"gaussian", "spectral", "orthogonal"}},
        number("factor", 0),
        count("width", 2),
        count("layers"),
        {"measure", {"rms_gain", "log10_gain", "spectral_norm", "share_of_bound", "decades_below_bound"}}},
       true,
       "product of square random matrices times a factor (entries N(0, 1/width); the same divided by its largest "
       "singular value; orthogonal): ‖∏W‖_F/√width, its logarithm, the mean σ_max of a matrix, ln gain/ln σ^layers, "
       "lg(σ^layers/gain)"},
      {K::residual_product,
       "residual_product",
       {number("factor", 0),
        number("exponent", 0),
        count("width", 2),
        count("layers"),
        {"measure", {"gain", "log10_gain", "cosine"}}},
       true,
       "gradient through blocks x + s·W ReLU(x), W He-normal, s = factor/layers^exponent: ‖∂L/∂x_0‖/‖∂L/∂x_L‖, its "
       "logarithm, the cosine of the two"},
      {K::cancelled_branch,
       "cancelled_branch",
       {count("layers"), count("width", 2)},
       true,
       "the same gain where each block's branch is F(x) = −x"},
      {K::norm_shift,
       "norm_shift",
       {norm, number("shift", 0)},
       true,
       "relative change of a norm's output when a constant is added to every feature"},
      {K::norm_scale,
       "norm_scale",
       {norm, number("factor", 0)},
       true,
       "relative change of a norm's output when its input is multiplied by a factor"},
      {K::norm_batch_dependence,
       "norm_batch_dependence",
       {norm},
       true,
       "relative change of the first sequence's output when the other sequences and later positions are drawn anew"},
      {K::norm_future_leak,
       "norm_future_leak",
       {norm},
       true,
       "largest absolute derivative of a position's output with respect to later positions' input, in training"},
      {K::norm_evaluation_batch,
       "norm_evaluation_batch",
       {norm},
       true,
       "largest difference between a row evaluated alone and evaluated in a batch of 32"},
      {K::norm_padding,
       "norm_padding",
       {norm, {.name = "share", .below = 1}, {"padding", {"masked", "counted"}}},
       true,
       "relative change of a norm's output at the real positions when a share of zero positions is appended"},
      {K::norm_gradient,
       "norm_gradient",
       {norm},
       true,
       "relative difference between the derivative of a norm and central differences, in double"},
      {K::batch_variance,
       "batch_variance",
       {count("batch", 2)},
       true,
       "relative standard deviation of the unbiased variance of `batch` normal numbers, divided by √(2/(batch − 1))"},
      {K::batch_of_one,
       "batch_of_one",
       {},
       true,
       "largest difference between the output of BatchNorm over one single row and its shift β"},
      {K::rms_identity,
       "rms_identity",
       {{"form", {"mean_squared", "mean_of_squares"}}, number("mean", 0)},
       true,
       "relative difference between RMS² and Var + mean(x)² (or, as printed, Var + mean(x²)) for features of that "
       "mean and variance 1"},
      {K::norm_distance,
       "norm_distance",
       {number("mean", 0)},
       true,
       "‖LN(x) − RMSNorm(x)‖/‖LN(x)‖ for features of that mean and variance 1, divided by √(2 − 2/√(1 + mean²))"},
      {K::sum_formula,
       "sum_formula",
       {{"placement", {"none", "pre", "post", "deepnorm"}}, count("depth")},
       true,
       "largest relative difference between the stream after each sub-layer and x + F, LN(x + F) or LN(α·x + F)"},
      {K::scaled_sum, "scaled_sum", {}, true, "relative difference between LN((x + F)/√2) and LN(x + F)"},
      {K::uniform_attention,
       "uniform_attention",
       {count("tokens", 2)},
       true,
       "variance of the mean over independent tokens divided by that of a token, times their number"},
      {K::stack_gradient,
       "stack_gradient",
       {placement, count("depth")},
       true,
       "relative difference between the loss's derivative along a random direction of all parameters and central "
       "differences, in double"},
      {K::mode_gap,
       "mode_gap",
       {{"norm", {"layernorm", "rmsnorm", "batchnorm"}}, count("depth"), count("steps")},
       true,
       "absolute difference in nats between the loss of a batch with BatchNorm's batch statistics and with its running "
       "ones, after training on `markov`"},
      {K::model_update,
       "model_update",
       {{"placement", {"pre", "post", "deepnorm", "none"}},
        {"optimizer", {"sgd", "adam"}},
        number("learning_rate", 0),
        count("steps"),
        count("depth")},
       true,
       "RMS change of the logits of a fixed batch after that many updates: DeepNet's ‖ΔF‖"},
  };
  return all;
}

std::string remedy_of(const OperatorArgument& argument) {
  if (!argument.words.empty()) return "write one of " + listed(argument.words);
  const std::string below = std::isinf(argument.below) ? "" : fmt::format(" and below {}", argument.below);
  return fmt::format("write a {}number, at least {}{}", argument.whole ? "whole " : "", argument.least, below);
}

/// The arguments of a check with some of them replaced.
JsonValue with_replaced(const JsonValue& arguments, const JsonValue& replacements) {
  if (replacements.kind != JsonValue::Kind::object) return replacements;  // the reader says what it must be
  JsonValue result = replacements;
  for (std::size_t i = 0; i < arguments.names.size(); ++i) {
    const std::string& name = arguments.names[i];
    if (name == "relative_to" || std::find(result.names.begin(), result.names.end(), name) != result.names.end())
      continue;
    result.names.push_back(name);
    result.elements.push_back(arguments.elements[i]);
  }
  return result;
}

}  // namespace

std::span<const OperatorRow> operators() { return rows(); }

std::string operators_table() {
  std::string table = "| check | arguments | number |\n| --- | --- | --- |\n";
  for (const OperatorRow& row : rows()) {
    std::string arguments;
    for (const OperatorArgument& argument : row.arguments)
      arguments += fmt::format("{}`{}`", arguments.empty() ? "" : ", ", argument.name);
    table += fmt::format("| `{}` | {} | {} |\n", row.name, arguments, row.meaning);
  }
  return table;
}

OperatorCheck read_operator(const JsonValue& value, const std::string& path, std::string_view file, Faults& faults) {
  OperatorCheck check;
  ObjectReader object(value, path, file, faults);
  Words names;
  for (const OperatorRow& row : rows()) names.push_back(row.name);
  const std::string name = object.require_text("name", fmt::format("write \"name\": one of {}", listed(names)));
  if (name.empty()) return check;
  const auto found = std::find_if(rows().begin(), rows().end(), [&](const auto& row) { return row.name == name; });
  if (found == rows().end()) {
    object.refuse(*object.find("name"), "name",
                  fmt::format("{} is no check; {}", in_quotes(name), did_you_mean_word(name, names)));
    return check;
  }
  check.row = &*found;
  for (const OperatorArgument& argument : found->arguments) {
    const JsonValue* given = object.require(argument.name, remedy_of(argument));
    if (given == nullptr) continue;
    const bool is_word = given->kind == JsonValue::Kind::string, is_number = given->kind == JsonValue::Kind::number;
    if (!argument.words.empty() && is_word) {
      if (std::find(argument.words.begin(), argument.words.end(), given->text) == argument.words.end())
        object.refuse(
            *given, argument.name,
            fmt::format("{} is unknown; {}", in_quotes(given->text), did_you_mean_word(given->text, argument.words)));
      check.words[std::string(argument.name)] = given->text;
    } else if (argument.words.empty() && is_number && std::isfinite(given->number) && given->number >= argument.least &&
               given->number < argument.below && (!argument.whole || given->number == std::floor(given->number))) {
      check.numbers[std::string(argument.name)] = given->number;
    } else {
      object.refuse(*given, argument.name, fmt::format("got {}; {}", described(*given), remedy_of(argument)));
    }
  }
  const JsonValue* other = object.find("relative_to");
  object.refuse_others();
  if (other != nullptr)
    check.relative_to.push_back(read_operator(with_replaced(value, *other), path + ".relative_to", file, faults));
  return check;
}

}  // namespace gradflow
