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

/// The same batch where the stack is; data come on the CPU. A copy from ordinary memory to a GPU waits for everything
/// queued there before; from page-locked memory it is queued like the rest.
inline Batch on_device(Batch batch, at::Device device) {
  if (device.is_cpu()) return batch;
  const auto upload = [device](const at::Tensor& tensor) {
    return device.is_cuda() ? tensor.pin_memory().to(device, /*non_blocking=*/true) : tensor.to(device);
  };
  batch.inputs = upload(batch.inputs);
  batch.targets = upload(batch.targets);
  if (batch.real.defined()) batch.real = upload(batch.real);
  return batch;
}

}  // namespace gradflow
