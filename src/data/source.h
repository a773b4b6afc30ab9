#pragma once

#include <cstdint>
#include <memory>

#include "config/config.h"
#include "data/task_facts.h"
#include "model/batch.h"

namespace gradflow {

/// A stream of batches. Stateless: a batch is a function of its number alone, so that resuming needs only a position
/// and 8 × 1 sequences equal 2 × 4. Batches may share their `real` mask, which nobody may write.
class DataSource {
 public:
  virtual ~DataSource() = default;
  virtual const TaskFacts& facts() const = 0;
  /// Micro-batch `micro` (from 0) of step `step` (from 1): sequences ((step−1)·accumulation + micro)·batch … +batch−1
  /// of the training stream.
  virtual Batch training_batch(std::int64_t step, std::int64_t micro) const = 0;
  /// Batch `index` (from 0) of the validation stream, always the same for the same configuration. Throws Error when the
  /// files keep no part for validation.
  virtual Batch validation_batch(std::int64_t index) const = 0;
};

/// The source that `config.data` names. Reads files; throws Error (file, key, remedy) for what cannot be used: a text
/// too short for one context, a vocabulary smaller than the symbols, a missing file, images of another layout.
/// `data.files` are taken as they stand: who reads the configuration has made them relative to its file.
std::unique_ptr<DataSource> make_source(const Config& config);

}  // namespace gradflow
