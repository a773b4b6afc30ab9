#pragma once

#include "config/config.h"
#include "data/sequence_task.h"

namespace gradflow {

// Tasks that ask one question a sequence, at its last position (the last before the padding).

/// `majority`: T uniform symbols of 0…V−1; the target of the last position is the most frequent one. There are no ties:
/// a drawn sequence that has some gets one more of a random one of its most frequent symbols, at a random place. All
/// symbols are alike in this, so the answer is uniform: H₁ = ln V.
class MajorityTask : public SequenceTask {
 public:
  explicit MajorityTask(const DataConfig& data);

  const TaskFacts& facts() const override { return facts_; }
  void draw(const SequenceDraw& draw, std::span<std::int64_t> inputs, std::span<std::int64_t> targets) const override;

 private:
  TaskFacts facts_;
};

/// `modular`: a, b uniform in 0…p−1, then the symbol V−1 (=) up to the last position, whose target is (a + b) mod p; p
/// is the largest prime ≤ V − 1. The answer is uniform: H₁ = ln p.
class ModularTask : public SequenceTask {
 public:
  /// Throws Error when T < 3 or V < 3.
  explicit ModularTask(const DataConfig& data);

  const TaskFacts& facts() const override { return facts_; }
  void draw(const SequenceDraw& draw, std::span<std::int64_t> inputs, std::span<std::int64_t> targets) const override;
  std::int64_t modulus() const { return modulus_; }

 private:
  std::int64_t modulus_;
  TaskFacts facts_;
};

}  // namespace gradflow
