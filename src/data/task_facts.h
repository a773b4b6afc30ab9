#pragma once

#include <cstdint>
#include <optional>

namespace gradflow {

/// What is known about a task before anything is trained. Entropies are in nats a position that is asked.
struct TaskFacts {
  std::int64_t vocabulary = 0;             ///< V; classes of a classification; 0 where no symbol is asked for
  std::optional<double> unigram_entropy;   ///< H₁: the loss of the best constant answer (a regression's has no unit)
  std::optional<double> entropy_rate;      ///< the exact optimum where it is known; 0 where the answer is determined
  std::optional<std::int64_t> text_bytes;  ///< text: bytes in the files
  std::optional<std::int64_t> text_tokens;
  std::optional<std::int64_t> distinct_tokens;
};

}  // namespace gradflow
