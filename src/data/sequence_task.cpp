#include "data/sequence_task.h"

namespace gradflow {

RandomStream sequence_stream(std::int64_t seed, Part part) {
  return {static_cast<std::uint64_t>(seed), part == Part::training ? "data.training" : "data.validation"};
}

Sequence draw_sequence(const SequenceTask& task, std::int64_t seed, Part part, std::int64_t number,
                       std::int64_t length) {
  const RandomStream stream = sequence_stream(seed, part);
  Sequence sequence{std::vector<std::int64_t>(static_cast<std::size_t>(length)),
                    std::vector<std::int64_t>(static_cast<std::size_t>(length))};
  task.draw({stream, part, static_cast<std::uint64_t>(number)}, sequence.inputs, sequence.targets);
  return sequence;
}

}  // namespace gradflow
