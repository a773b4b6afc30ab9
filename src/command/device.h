#pragma once

#include <cstdint>
#include <string>

#include "config/config.h"
#include "model/tensor.h"

namespace gradflow {

/// CUDA devices that this process may use; 0 without CUDA in LibTorch, without a driver, without a visible device.
std::int64_t cuda_device_count();

/// Why `cuda_device_count` is 0, in words of the user's world.
std::string no_cuda_reason();

/// The device that `compute.device` names: cpu, cuda (the first), cuda:N, auto (cuda where there is one, else cpu).
/// Throws Error "compute.device: …" for CUDA that is not there, saying what works; only `auto` falls back. `devices` is
/// the number of CUDA devices.
at::Device device_named(const std::string& name, std::int64_t devices = cuda_device_count());

/// Sets what LibTorch keeps for the whole process: threads, denormal numbers, no rounding of float32 factors. Throws
/// Error "compute.flush_denormals: …" where the processor cannot.
void set_up_libtorch(const ComputeConfig& compute);

}  // namespace gradflow
