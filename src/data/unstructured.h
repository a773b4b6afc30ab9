#pragma once

#include "config/config.h"
#include "data/sequence_task.h"

namespace gradflow {

// Tasks with nothing to learn: a floor and a fixture.

/// `random`: context + 1 uniform independent tokens; targets are the next ones. Nothing beats ln V.
class RandomTask : public SequenceTask {
 public:
  explicit RandomTask(const DataConfig& data);

  const TaskFacts& facts() const override { return facts_; }
  void draw(const SequenceDraw& draw, std::span<std::int64_t> inputs, std::span<std::int64_t> targets) const override;

 private:
  TaskFacts facts_;
};

/// `quadratic`: no randomness, for comparing with another implementation. In batch k (from 0, counted over the
/// micro-batches of all steps) position t of row b has i = b·context + t + 17·k, input (7i + 3i² + 1) mod V and target
/// (5i + i² + 2) mod V. The formula knows no second stream: validation batches are those of k = 0, 1, …. H₁ is that of
/// the targets over a whole period of V positions.
class QuadraticTask : public SequenceTask {
 public:
  QuadraticTask(const DataConfig& data, std::int64_t batch);

  const TaskFacts& facts() const override { return facts_; }
  void draw(const SequenceDraw& draw, std::span<std::int64_t> inputs, std::span<std::int64_t> targets) const override;

 private:
  std::uint64_t target(std::uint64_t i) const;

  std::uint64_t modulus_;
  std::uint64_t context_;
  std::uint64_t batch_;
  TaskFacts facts_;
};

}  // namespace gradflow
