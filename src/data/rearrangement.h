#pragma once

#include "config/config.h"
#include "data/sequence_task.h"

namespace gradflow {

/// `copy`, `reverse`, `sort`: n = ⌊(T − 1)/2⌋ uniform symbols of 0…V−2, the separator V−1, then the answer: the same
/// symbols in the same, the opposite or rising order. T is the context without its padding. As next-token prediction:
///
///     position   0 … n−1   n          n+1 … 2n          2n+1 (even T only)
///     input      symbols   separator  answer            separator
///     target     -         answer[0]  answer[1 … n−1], -  -
///
/// so that the answer's n symbols are the targets of positions n…2n−1. Each is uniform over V−1 symbols (for `sort`
/// over its positions together): H₁ = ln(V−1).
class RearrangementTask : public SequenceTask {
 public:
  /// `data.task` is one of the three. Throws Error when T < 3 or V < 3.
  explicit RearrangementTask(const DataConfig& data);

  const TaskFacts& facts() const override { return facts_; }
  void draw(const SequenceDraw& draw, std::span<std::int64_t> inputs, std::span<std::int64_t> targets) const override;

 private:
  Task task_;
  std::int64_t separator_;
  TaskFacts facts_;
};

}  // namespace gradflow
