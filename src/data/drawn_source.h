#pragma once

#include <cstdint>

#include "config/config.h"
#include "data/sequence_task.h"
#include "data/source.h"

namespace gradflow {

/// A source whose batches are consecutive draws from two streams of samples, one for training and one for validation:
/// which draws a batch takes stands here, how they become tensors in the derived class.
class DrawnSource : public DataSource {
 public:
  explicit DrawnSource(const Config& config)
      : batch_(config.train.batch),
        accumulation_(config.train.accumulation),
        training_(sequence_stream(config.seed, Part::training)),
        validation_(sequence_stream(config.seed, Part::validation)) {}

  Batch training_batch(std::int64_t step, std::int64_t micro) const final {
    return make(training_, Part::training, (step - 1) * accumulation_ + micro);
  }
  Batch validation_batch(std::int64_t index) const final { return make(validation_, Part::validation, index); }

 protected:
  std::int64_t batch() const { return batch_; }
  /// Batch `index` of the stream, from 0: draws index·batch() … +batch()−1, row by row.
  virtual Batch make(const RandomStream& stream, Part part, std::int64_t index) const = 0;
  /// The draw of one row of it.
  SequenceDraw draw_of(const RandomStream& stream, Part part, std::int64_t index, std::int64_t row) const {
    return {stream, part, static_cast<std::uint64_t>(index * batch_ + row)};
  }

 private:
  std::int64_t batch_;
  std::int64_t accumulation_;
  RandomStream training_;
  RandomStream validation_;
};

}  // namespace gradflow
