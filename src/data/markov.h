#pragma once

#include <vector>

#include "config/config.h"
#include "data/sequence_task.h"

namespace gradflow {

/// `markov`: an order-1 chain over V symbols. Each symbol has k distinct successors with probabilities ½, ¼, …, the
/// last two equal; the chain follows `data.seed` alone. One of the successors, the least likely, is the next symbol of
/// a random cycle through all V: so every symbol can be reached from every other and there is exactly one stationary
/// distribution, in which no symbol is missing. A sequence is context + 1 symbols, the first from the stationary
/// distribution: inputs are all but the last, targets all but the first.
class MarkovTask : public SequenceTask {
 public:
  /// Throws Error when there are more successors than symbols.
  explicit MarkovTask(const DataConfig& data);

  const TaskFacts& facts() const override { return facts_; }
  void draw(const SequenceDraw& draw, std::span<std::int64_t> inputs, std::span<std::int64_t> targets) const override;

  /// The successors of a symbol, the most likely first.
  std::span<const std::int64_t> successors(std::int64_t symbol) const;
  /// Their probabilities, the same for every symbol.
  std::span<const double> probabilities() const { return probabilities_; }
  std::span<const double> stationary() const { return stationary_; }

 private:
  void draw_successors(std::uint64_t seed);
  void find_stationary();
  std::int64_t first_symbol(double uniform) const;

  std::int64_t symbols_;
  std::int64_t successors_each_;
  std::vector<double> probabilities_;
  std::vector<std::int64_t> successors_;  // [symbols][successors_each]
  std::vector<double> stationary_;
  std::vector<double> cumulative_;
  TaskFacts facts_;
};

}  // namespace gradflow
