#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/philox.h"
#include "data/task_facts.h"

namespace gradflow {

/// A target where nothing is asked: the loss leaves it out.
inline constexpr std::int64_t no_target = -100;

/// Training and validation are two streams of sequences that share nothing.
enum class Part { training, validation };

/// The random values of one sequence: the j-th depends on nothing but the seed, the part, the sequence's number and j.
/// So a sequence is the same in whatever batch it stands and whatever was drawn before.
class SequenceDraw {
 public:
  /// `stream` must outlive the draw.
  SequenceDraw(const RandomStream& stream, Part part, std::uint64_t number)
      : stream_(&stream), part_(part), number_(number) {}

  Part part() const { return part_; }
  std::uint64_t number() const { return number_; }
  std::uint64_t bits(std::uint64_t j) const { return stream_->bits(index(j)); }
  double uniform(std::uint64_t j) const { return stream_->uniform(index(j)); }
  double normal(std::uint64_t j) const { return stream_->normal(index(j)); }
  std::int64_t below(std::int64_t bound, std::uint64_t j) const {
    return static_cast<std::int64_t>(stream_->below(static_cast<std::uint64_t>(bound), index(j)));
  }

 private:
  /// 2^40 sequences of 2^24 values each.
  std::uint64_t index(std::uint64_t j) const { return number_ << 24 | j; }

  const RandomStream* stream_;
  Part part_;
  std::uint64_t number_;
};

/// A task on token sequences.
class SequenceTask {
 public:
  virtual ~SequenceTask() = default;
  virtual const TaskFacts& facts() const = 0;
  /// Writes one sequence of real (not padded) tokens: inputs and targets have the same length, context minus padding;
  /// targets[t] is what the model shall say at position t, or no_target.
  virtual void draw(const SequenceDraw& draw, std::span<std::int64_t> inputs,
                    std::span<std::int64_t> targets) const = 0;
};

/// A sequence by itself.
struct Sequence {
  std::vector<std::int64_t> inputs;
  std::vector<std::int64_t> targets;
};

/// Sequence `number` (from 0) of a part, of `length` real tokens, as the seed gives it.
Sequence draw_sequence(const SequenceTask& task, std::int64_t seed, Part part, std::int64_t number,
                       std::int64_t length);

/// The stream of random values that the sequences of a part come from.
RandomStream sequence_stream(std::int64_t seed, Part part);

}  // namespace gradflow
