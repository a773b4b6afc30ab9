#pragma once

#include "model/tensor.h"

namespace gradflow {

/// One micro-batch, on the CPU or on the device of the stack.
struct Batch {
  at::Tensor inputs;   ///< int64 [B, T] tokens; float [B, inputs] or [B, C, H, W] for vectors and images
  at::Tensor targets;  ///< int64 [B, T], -100 where nothing is asked; int64 [B] classes; float [B, ...] for regression
  at::Tensor real;     ///< bool [B, T], true where a token is not padding; undefined when nothing is padded
  std::int64_t tokens = 0;  ///< positions that are not padding: what `tokens` of steps.csv counts
};

/// The same batch where the stack is; data come on the CPU.
inline Batch on_device(Batch batch, at::Device device) {
  if (device.is_cpu()) return batch;
  batch.inputs = batch.inputs.to(device);
  batch.targets = batch.targets.to(device);
  if (batch.real.defined()) batch.real = batch.real.to(device);
  return batch;
}

}  // namespace gradflow
