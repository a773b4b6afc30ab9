#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "config/config.h"
#include "model/batch.h"

namespace gradflow {

/// What is known about a task before anything is trained.
struct TaskFacts {
  std::int64_t vocabulary = 0;               ///< V; classes for a classification task
  std::optional<double> unigram_entropy;     ///< H₁ in nats: the loss of the best constant answer
  std::optional<double> entropy_rate;        ///< the exact optimum where it is known (markov), in nats
  std::optional<std::int64_t> text_bytes;    ///< text: bytes read
  std::optional<std::int64_t> text_tokens;   ///< text: tokens
  std::optional<std::int64_t> distinct_tokens;
};

/// A stream of batches. Stateless: a batch is a function of its number alone, so that resuming needs only a position and
/// 8 × 1 sequences equal 2 × 4.
class DataSource {
 public:
  virtual ~DataSource() = default;
  virtual const TaskFacts& facts() const = 0;
  /// Micro-batch `micro` (from 0) of step `step` (from 1): sequences ((step−1)·accumulation + micro)·batch … +batch−1 of
  /// the training stream.
  virtual Batch training_batch(std::int64_t step, std::int64_t micro) const = 0;
  /// Batch `index` (from 0) of the validation stream, always the same for the same configuration.
  virtual Batch validation_batch(std::int64_t index) const = 0;
};

/// The source that `config.data` names. Reads files; throws Error (file, key, remedy) for what cannot be used: a text
/// too short for one context, a vocabulary smaller than the symbols, a missing file.
std::unique_ptr<DataSource> make_source(const Config& config);

}  // namespace gradflow
