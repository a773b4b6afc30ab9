#include "command/environment.h"

#include <ATen/Version.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <torch/version.h>

#include <array>
#include <regex>

#include "command/device.h"
#include "core/machine.h"
#include "model/tensor.h"

namespace gradflow {
namespace {

/// A function of a library that is loaded already, or null: what a BLAS can tell about itself differs from one to the
/// next, and LibTorch does not pass it on.
template <class Function>
Function* loaded_function(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

std::string first_match(const std::string& text, const std::regex& pattern) {
  std::smatch match;
  return std::regex_search(text, match, pattern) ? match[1].str() : "";
}

std::string blas_name() {
  if (at::hasMKL()) return "Intel oneAPI MKL " + first_match(at::get_mkl_version(), std::regex("Version ([0-9.]+)"));
  if (auto* config = loaded_function<const char*()>("openblas_get_config"))
    return "OpenBLAS " + first_match(config(), std::regex("OpenBLAS ([0-9.]+)"));
  const std::string name = first_match(at::show_config(), std::regex("BLAS_INFO=([^,]+)"));
  return name.empty() ? "unknown" : name;
}

/// MKL names its kernels by numbers: the constants MKL_CBWR_* of its manual on conditional numerical reproducibility.
std::string mkl_kernel(int branch) {
  static constexpr std::array<std::pair<int, const char*>, 10> names{{{3, "COMPATIBLE"},
                                                                      {4, "SSE2"},
                                                                      {6, "SSSE3"},
                                                                      {7, "SSE4_1"},
                                                                      {8, "SSE4_2"},
                                                                      {9, "AVX"},
                                                                      {10, "AVX2"},
                                                                      {11, "AVX512_MIC"},
                                                                      {12, "AVX512"},
                                                                      {14, "AVX512_E1"}}};
  for (const auto& [number, name] : names)
    if (number == branch) return name;
  return "unknown";
}

std::string blas_kernel() {
  if (auto* core = loaded_function<const char*()>("openblas_get_corename")) return core();
  for (const char* name : {"mkl_cbwr_get_auto_branch", "mkl_serv_cbwr_get_auto_branch"})
    if (auto* branch = loaded_function<int()>(name)) return mkl_kernel(branch());
  return "unknown";
}

std::string library_path() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&at::get_cpu_capability), &info) == 0 || info.dli_fname == nullptr)
    return "unknown";
  return info.dli_fname;
}

std::string cuda_text(std::int64_t devices) {
  if (devices == 0) return "not available: " + no_cuda_reason();
  const long version = at::globalContext().versionCUDART();
  return fmt::format("{}.{}, {} {}", version / 1000, version % 1000 / 10, devices, devices == 1 ? "device" : "devices");
}

}  // namespace

std::string libtorch_version() {
  return fmt::format("{}.{}.{}", TORCH_VERSION_MAJOR, TORCH_VERSION_MINOR, TORCH_VERSION_PATCH);
}

Environment environment() {
  const std::int64_t devices = cuda_device_count();
  return {.libtorch = libtorch_version(),
          .libtorch_path = library_path(),
          .blas = blas_name(),
          .blas_kernel = blas_kernel(),
          .simd = at::get_cpu_capability(),
          .cuda = cuda_text(devices),
          .cuda_devices = devices,
          .cores = usable_cores()};
}

}  // namespace gradflow
