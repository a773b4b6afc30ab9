#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "config/config.h"
#include "data/sequence_task.h"
#include "data/source.h"
#include "data/task_facts.h"

namespace gradflow {

/// A task on vectors or images. What is asked for a sample is its class, or the input itself.
class SampleTask {
 public:
  virtual ~SampleTask() = default;
  virtual const TaskFacts& facts() const = 0;
  /// Of one input: {features}, or {channels, side, side}.
  virtual std::vector<std::int64_t> shape() const = 0;
  /// Whether the model shall give the input back (squared error) instead of naming the class.
  virtual bool asks_for_input() const { return false; }
  /// Writes the input of one sample, row-major, and returns its class (0 where none is asked for).
  virtual std::int64_t draw(const SequenceDraw& draw, std::span<double> input) const = 0;
};

/// Batches of the samples of a task: inputs [B, shape…] in float32, or float64 for a float64 stack; targets int64 [B]
/// or as the inputs. Sample i of a part is a function of the seed and i alone.
std::unique_ptr<DataSource> make_sample_source(const Config& config, std::unique_ptr<SampleTask> task);

}  // namespace gradflow
