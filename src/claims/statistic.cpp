#include "claims/statistic.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/verdict.h"
#include "config/nearest.h"
#include "config/quantities.h"
#include "config/text.h"
#include "output/table.h"

namespace gradflow {
namespace {

using enum ArgumentKind;
using Words = std::vector<std::string_view>;

const std::vector<StatisticRow>& rows() {
  using K = StatisticKind;
  static const StatisticArgument at_step{"step", step};
  static const StatisticArgument of_sublayer{"sublayer", sublayer, false};
  static const StatisticArgument of_layers{"column", layers_column};
  static const StatisticArgument over_key{"over", key};
  static const std::vector<StatisticRow> all{
      {K::final_loss,
       "final_loss",
       0,
       {},
       "mean of the last 20 losses; a run that stopped at a non-finite value has none"},
      {K::capped_loss,
       "capped_loss",
       0,
       {},
       "final_loss, at most the first loss; the first loss for a run that stopped"},
      {K::first_loss, "first_loss", 0, {}, "the loss of step 1"},
      {K::above_unigram, "above_unigram", 0, {}, "capped_loss − H₁: about 0 for a run that is stuck"},
      {K::verdict_is,
       "verdict_is",
       0,
       {{"verdict", verdict}},
       "1 when the run ended so, else 0; its mean is a share of the seeds"},
      {K::trains, "trains", 0, {}, "1 when the final loss is below the middle of entropy rate and H₁, else 0"},
      {K::spike_count, "spike_count", 0, {{"series", series}}, "episodes in spikes.csv"},
      {K::loss_noise,
       "loss_noise",
       0,
       {{"from", number}},
       "standard deviation of the losses' successive differences from that step on, divided by √2"},
      {K::step_value, "step_value", 0, {{"column", steps_column}, at_step}, "a cell of steps.csv"},
      {K::layer_value, "layer_value", 0, {of_layers, {"block", block}, of_sublayer, at_step}, "a cell of layers.csv"},
      {K::over_layers,
       "over_layers",
       0,
       {of_layers, {"take", summary}, of_sublayer, at_step},
       "mean, median, smallest or largest over the blocks"},
      {K::first_last_ratio,
       "first_last_ratio",
       0,
       {of_layers, of_sublayer, at_step},
       "the value of the first block divided by that of the last"},
      {K::depth_rate,
       "depth_rate",
       0,
       {of_layers, of_sublayer, at_step},
       "slope of ln q on distance over the blocks (gradients: from the output down)"},
      {K::depth_exponent,
       "depth_exponent",
       0,
       {of_layers, of_sublayer, at_step},
       "slope of ln q on ln distance over the blocks"},
      {K::depth_correlation,
       "depth_correlation",
       0,
       {of_layers, of_sublayer, at_step},
       "Spearman's rank correlation with the block's number"},
      {K::tensor_value,
       "tensor_value",
       0,
       {{"tensor", tensor}, {"block", block}, {"column", tensors_column}, at_step},
       "a cell of tensors.csv"},
      {K::quantity_value,
       "quantity_value",
       0,
       {{"quantity", quantity}, {"block", block, false}, at_step},
       "a value of quantities.csv; without a block that of the whole stack"},
      {K::logarithm, "logarithm", 1, {}, "natural logarithm"},
      {K::square, "square", 1, {}, "the number times itself"},
      {K::absolute, "absolute", 1, {}, "without its sign"},
      {K::slope,
       "slope",
       1,
       {over_key, {"x", scale}, {"y", scale}, {"from", number, false}},
       "of the least-squares line of the operand on the values of a key (only those at least `from`)"},
      {K::sensitivity,
       "sensitivity",
       1,
       {over_key},
       "mean over the values of a key, less the smallest: learning-rate sensitivity (Wortsman 2023)"},
      {K::best_key,
       "best_key",
       1,
       {over_key},
       "the value of the key where the operand is smallest, by a parabola through the best three on a logarithmic "
       "scale"},
      {K::largest_working,
       "largest_working",
       1,
       {over_key},
       "the largest value of the key where the operand is above ½"},
      {K::smallest, "smallest", 1, {over_key}, "over the values of a key"},
      {K::largest, "largest", 1, {over_key}, "over the values of a key"},
      {K::average, "average", 1, {over_key}, "mean over the values of a key"},
      {K::difference, "difference", 2, {}, "first operand less the second, of the same seed"},
      {K::ratio, "ratio", 2, {}, "first operand divided by the second, of the same seed"},
  };
  return all;
}

Words names_of_rows() {
  Words words;
  for (const StatisticRow& row : rows()) words.push_back(row.name);
  return words;
}

Words names_of_columns(std::span<const Column> columns, std::initializer_list<std::string_view> without) {
  Words words;
  for (const Column& column : columns)
    if (std::find(without.begin(), without.end(), column.name) == without.end()) words.push_back(column.name);
  return words;
}

Words words_of(ArgumentKind kind) {
  switch (kind) {
    case steps_column: return names_of_columns(steps_columns(), {"step"});
    case layers_column: return names_of_columns(layers_columns(), {"step", "layer", "sublayer"});
    case tensors_column: return names_of_columns(tensors_columns(), {"step", "tensor"});
    case sublayer: return {"attention", "ffn", "dense", "conv"};
    case series: return {"loss", "grad_norm"};
    case summary: return {"mean", "median", "smallest", "largest"};
    case scale: return {"linear", "log"};
    case verdict: {
      Words words;
      for (const Verdict v : {Verdict::diverged, Verdict::learned, Verdict::learning, Verdict::stuck, Verdict::worse})
        words.push_back(name_of(v));
      return words;
    }
    case quantity: {
      Words words;
      for (const Quantity& q : measured_quantities())
        if (q.set == QuantitySet::on_demand) words.push_back(q.name);
      return words;
    }
    default: return {};
  }
}

/// Reads the arguments of one statistic into their places.
class ArgumentReader {
 public:
  ArgumentReader(ObjectReader& object, Statistic& into) : object_(object), into_(into) {}

  void read(const StatisticArgument& argument) {
    const JsonValue* value =
        argument.required ? object_.require(argument.name, remedy_of(argument)) : object_.find(argument.name);
    if (value == nullptr) return;
    switch (argument.kind) {
      case step: return read_position(*value, argument, into_.step);
      case block: into_.has_block = true; return read_position(*value, argument, into_.block);
      case sublayer: return read_word(*value, argument, into_.sublayer);
      case steps_column:
      case layers_column:
      case tensors_column: return read_word(*value, argument, into_.column);
      case quantity: return read_word(*value, argument, into_.quantity);
      case verdict: return read_word(*value, argument, into_.verdict);
      case series: return read_word(*value, argument, into_.series);
      case summary: return read_word(*value, argument, into_.summary);
      case scale: return read_scale(*value, argument);
      case tensor: return read_tensor(*value, argument);
      case key: return read_key(*value, argument);
      case number:
        if (value->kind == JsonValue::Kind::number) {
          into_.from = value->number;
        } else {
          refuse(*value, argument, "must be a number");
        }
    }
  }

 private:
  static std::string remedy_of(const StatisticArgument& argument) {
    switch (argument.kind) {
      case step:
      case block: return fmt::format("write \"{}\": \"first\", \"last\" or a number", argument.name);
      case tensor: return R"(write for example "tensor": "ffn.out.weight")";
      case key: return R"(write a key that the experiment varies, for example "model.depth")";
      case number: return "write a number";
      default: return "write one of " + listed(words_of(argument.kind));
    }
  }

  void refuse(const JsonValue& at, const StatisticArgument& argument, std::string_view fault) {
    object_.refuse(at, argument.name, fmt::format("{}, got {}; {}", fault, described(at), remedy_of(argument)));
  }

  void read_position(const JsonValue& value, const StatisticArgument& argument, Position& into) {
    if (value.kind == JsonValue::Kind::string && value.text == "first")
      into.where = Position::Where::first;
    else if (value.kind == JsonValue::Kind::string && value.text == "last")
      into.where = Position::Where::last;
    else if (value.kind == JsonValue::Kind::number && Count{1}.read(value, into.number).empty())
      into.where = Position::Where::at;
    else
      refuse(value, argument, "must be a position");
  }

  void read_word(const JsonValue& value, const StatisticArgument& argument, std::string& into) {
    const Words words = words_of(argument.kind);
    if (value.kind != JsonValue::Kind::string) return refuse(value, argument, "must be a word");
    if (std::find(words.begin(), words.end(), value.text) == words.end())
      return object_.refuse(
          value, argument.name,
          fmt::format("{} is unknown; {}", in_quotes(value.text), did_you_mean_word(value.text, words)));
    into = value.text;
  }

  void read_scale(const JsonValue& value, const StatisticArgument& argument) {
    std::string word;
    read_word(value, argument, word);
    (argument.name == "x" ? into_.log_x : into_.log_y) = word == "log";
  }

  void read_tensor(const JsonValue& value, const StatisticArgument& argument) {
    if (value.kind != JsonValue::Kind::string || value.text.empty()) return refuse(value, argument, "must be a name");
    into_.tensor = value.text;
  }

  void read_key(const JsonValue& value, const StatisticArgument& argument) {
    if (value.kind != JsonValue::Kind::string) return refuse(value, argument, "must be the name of a key");
    into_.over = find_field(value.text);
    if (into_.over == nullptr)
      object_.refuse(
          value, argument.name,
          fmt::format("{} is no key; {}", in_quotes(value.text), did_you_mean(nearest_keys(value.text, false))));
  }

  ObjectReader& object_;
  Statistic& into_;
};

std::vector<Condition> read_conditions(const JsonValue& value, ObjectReader& parent) {
  std::vector<Condition> conditions;
  const ObjectReader reader(value, parent.path_of("where"), parent.file(), parent.faults());
  for (std::size_t i = 0; i < value.elements.size(); ++i) {
    const std::string& name = value.names[i];
    const std::string path = reader.path_of(name);
    const Field* field = find_field(name);
    if (field == nullptr) {
      parent.faults().add(line_of(parent.file(), value.elements[i].line), path,
                          "unknown key; " + did_you_mean(nearest_keys(name, false)));
      continue;
    }
    Config scratch;
    if (const std::string fault = field->assign(value.elements[i], scratch); !fault.empty()) {
      parent.faults().add(line_of(parent.file(), value.elements[i].line), path, fault);
      continue;
    }
    conditions.push_back({field, field->value(scratch)});
  }
  return conditions;
}

std::vector<Statistic> read_operands(const JsonValue& value, std::size_t count, ObjectReader& parent) {
  const std::string path = parent.path_of("of");
  if (count == 1) return {read_statistic(value, path, parent.file(), parent.faults())};
  if (value.kind != JsonValue::Kind::array || value.elements.size() != count) {
    parent.refuse(value, "of", fmt::format("must be a list of {} statistics, got {}", count, described(value)));
    return {};
  }
  std::vector<Statistic> operands;
  for (std::size_t i = 0; i < count; ++i)
    operands.push_back(
        read_statistic(value.elements[i], fmt::format("{}.{}", path, i + 1), parent.file(), parent.faults()));
  return operands;
}

std::string argument_words(const StatisticArgument& argument) {
  return argument.required ? fmt::format("`{}`", argument.name) : fmt::format("[`{}`]", argument.name);
}

}  // namespace

std::span<const StatisticRow> statistics() { return rows(); }

const StatisticRow& row_of(StatisticKind kind) { return rows()[static_cast<std::size_t>(kind)]; }

std::string statistics_table() {
  std::string table = "| statistic | arguments | number |\n| --- | --- | --- |\n";
  for (const StatisticRow& row : rows()) {
    std::string arguments = row.operands == 1 ? "`of`" : row.operands == 2 ? "`of` (two)" : "";
    for (const StatisticArgument& argument : row.arguments)
      arguments += (arguments.empty() ? "" : ", ") + argument_words(argument);
    table += fmt::format("| `{}` | {} | {} |\n", row.name, arguments, row.meaning);
  }
  return table;
}

std::int64_t Position::in(std::int64_t last) const {
  switch (where) {
    case Where::first: return 1;
    case Where::last: return last;
    case Where::at: return number;
  }
  return number;
}

Statistic read_statistic(const JsonValue& value, const std::string& path, std::string_view file, Faults& faults) {
  Statistic statistic;
  statistic.path = path;
  statistic.line = value.line;
  ObjectReader object(value, path, file, faults);
  const std::string name =
      object.require_text("name", fmt::format("write \"name\": one of {}", listed(names_of_rows())));
  if (name.empty()) return statistic;
  const auto found = std::find_if(rows().begin(), rows().end(), [&](const auto& row) { return row.name == name; });
  if (found == rows().end()) {
    object.refuse(*object.find("name"), "name",
                  fmt::format("{} is no statistic; {}", in_quotes(name), did_you_mean_word(name, names_of_rows())));
    return statistic;
  }
  statistic.kind = found->kind;
  if (const JsonValue* where = object.find("where")) statistic.where = read_conditions(*where, object);
  ArgumentReader arguments(object, statistic);
  for (const StatisticArgument& argument : found->arguments) arguments.read(argument);
  if (found->operands > 0)
    if (const JsonValue* of = object.require("of", "write the statistic that it is taken of"))
      statistic.of = read_operands(*of, found->operands, object);
  object.refuse_others();
  return statistic;
}

}  // namespace gradflow
