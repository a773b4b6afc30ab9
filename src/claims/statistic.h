#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "claims/object_reader.h"
#include "config/config.h"
#include "config/fields.h"

namespace gradflow {

// The vocabulary of statistics: what a claim file may ask of its runs. A statistic gives one number a seed. Leaves read
// one run; the others combine the numbers of their operands, so that a difference is one between runs of the same seed.

enum class StatisticKind {
  // leaves
  final_loss,
  capped_loss,
  first_loss,
  above_unigram,
  verdict_is,
  trains,
  spike_count,
  loss_noise,
  step_value,
  layer_value,
  over_layers,
  first_last_ratio,
  depth_rate,
  depth_exponent,
  depth_correlation,
  tensor_value,
  quantity_value,
  // of one operand
  logarithm,
  square,
  absolute,
  slope,
  sensitivity,
  best_key,
  largest_working,
  smallest,
  largest,
  average,
  // of two operands
  difference,
  ratio,
};

/// What an argument of a statistic may be.
enum class ArgumentKind {
  step,            ///< "first", "last" or a number; of a recorded step
  block,           ///< "first", "last" or a number, of blocks
  sublayer,        ///< a sub-layer of the stack; absent: the last of a block, where the stream leaves it
  steps_column,    ///< a column of steps.csv
  layers_column,   ///< a measured column of layers.csv
  tensors_column,  ///< a measured column of tensors.csv
  quantity,        ///< a quantity of quantities.csv
  tensor,          ///< the end of a parameter's name within its block: "ffn.out.weight"
  verdict,         ///< a verdict on a run
  series,          ///< loss or grad_norm
  summary,         ///< mean, median, smallest or largest
  key,             ///< a key that the experiment varies, with numbers as values
  scale,           ///< linear or log
  number,
};

struct StatisticArgument {
  std::string_view name;
  ArgumentKind kind;
  bool required = true;
};

struct StatisticRow {
  StatisticKind kind;
  std::string_view name;
  std::size_t operands;
  std::vector<StatisticArgument> arguments;
  std::string_view meaning;
};

/// Every statistic, in the order of StatisticKind.
std::span<const StatisticRow> statistics();
const StatisticRow& row_of(StatisticKind kind);
/// The vocabulary as a Markdown table (README).
std::string statistics_table();

/// "first", "last", or a number.
struct Position {
  enum class Where { first, last, at } where = Where::last;
  std::int64_t number = 0;

  /// The number it means where the last is `last`.
  std::int64_t in(std::int64_t last) const;
};

/// Keeps the runs whose key has this value.
struct Condition {
  const Field* key = nullptr;
  Json value;
};

struct Statistic {
  StatisticKind kind = StatisticKind::final_loss;
  std::vector<Condition> where;  ///< for it and its operands
  std::vector<Statistic> of;     ///< operands
  Position step, block;
  bool has_block = false;  ///< whether `block` was written
  std::string column, sublayer, tensor, quantity, series, summary, verdict;
  const Field* over = nullptr;
  bool log_x = false, log_y = false;
  double from = 0;
  std::string path;       ///< within the file, for messages
  std::int64_t line = 1;  ///< of the file
};

/// Reads a statistic; faults name the path below `path` within the file.
Statistic read_statistic(const JsonValue& value, const std::string& path, std::string_view file, Faults& faults);

}  // namespace gradflow
