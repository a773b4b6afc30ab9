#include "command/device.h"

#include <ATen/Parallel.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <filesystem>

#include "core/error.h"

namespace gradflow {

std::int64_t cuda_device_count() {
  if (!c10::impl::hasDeviceGuardImpl(at::kCUDA)) return 0;
  return c10::impl::VirtualGuardImpl(at::kCUDA).deviceCount();
}

std::string no_cuda_reason() {
  if (!at::globalContext().hasCUDART())
    return "this program was built with a LibTorch without CUDA; build it with a CUDA one, named by CMAKE_PREFIX_PATH";
  if (!std::filesystem::exists("/dev/nvidiactl")) return "no NVIDIA driver is loaded on this machine";
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES"))
    return fmt::format("no device is visible with CUDA_VISIBLE_DEVICES=\"{}\"", visible);
  return "the NVIDIA driver offers no device, or is too old for this LibTorch";
}

at::Device device_named(const std::string& name, std::int64_t devices) {
  if (name == "cpu") return at::Device(at::kCPU);
  if (name == "auto") return devices > 0 ? at::Device(at::kCUDA, 0) : at::Device(at::kCPU);
  std::int64_t index = 0;
  if (name.starts_with("cuda:")) {
    const char* end = name.data() + name.size();
    const auto [stopped, fault] = std::from_chars(name.data() + 5, end, index);
    if (fault != std::errc() || stopped != end || index < 0)
      throw Error(fmt::format("compute.device: \"{}\" is no device; write cpu, cuda, cuda:N or auto", name));
  } else if (name != "cuda") {
    throw Error(fmt::format("compute.device: \"{}\" is no device; write cpu, cuda, cuda:N or auto", name));
  }
  if (devices == 0)
    throw Error(
        fmt::format("compute.device: \"{}\" cannot be used: {}; write \"cpu\", or \"auto\" to take CUDA where it is",
                    name, no_cuda_reason()));
  if (index >= devices)
    throw Error(fmt::format("compute.device: \"{}\" is not there: only {} {} visible, cuda:0{}; write one of these",
                            name, devices, devices == 1 ? "device is" : "devices are",
                            devices == 1 ? "" : fmt::format(" … cuda:{}", devices - 1)));
  return at::Device(at::kCUDA, static_cast<at::DeviceIndex>(index));
}

void set_up_libtorch(const ComputeConfig& compute) {
  // First the mode, which belongs to a thread and is inherited by those that it starts, then the threads.
  if (!at::globalContext().setFlushDenormal(compute.flush_denormals) && compute.flush_denormals)
    throw Error("compute.flush_denormals: this processor cannot flush denormal numbers; write false");
  at::set_num_threads(static_cast<int>(compute.threads));
  // float32 means float32: on a GPU LibTorch would round the factors of convolutions to ten bits.
  at::globalContext().setAllowTF32CuDNN(false);
  at::globalContext().setAllowTF32CuBLAS(false);
  if (compute.device == "cpu" || !at::globalContext().hasCUDART()) return;
  // Where an operator has an algorithm that adds up in a fixed order, it is taken; the others stay as they are. Without
  // the fill, which would clear every new tensor. The BLAS reads its variable when the first product is made.
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/true);
  at::globalContext().setDeterministicFillUninitializedMemory(false);
  ::setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
}

}  // namespace gradflow
