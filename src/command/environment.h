#pragma once

#include <cstdint>
#include <string>

namespace gradflow {

/// What LibTorch brings to this process and what it finds on this machine, for `info`, --version and the manifest.
struct Environment {
  std::string libtorch;       ///< "2.13.0"
  std::string libtorch_path;  ///< the library file that was loaded, "unknown" where the system does not say
  std::string blas;           ///< "Intel oneAPI MKL 2024.2", "OpenBLAS 0.3.21", else LibTorch's own word for it
  std::string blas_kernel;    ///< the processor family whose kernels it took, "AVX512", "SkylakeX"; "unknown"
  std::string simd;           ///< instruction set of LibTorch's own kernels: "AVX512", "AVX2", "DEFAULT"
  std::string cuda;           ///< "12.6, 2 devices", or why none can be used
  std::int64_t cuda_devices = 0;
  std::int64_t cores = 1;  ///< cores that this process may use (affinity mask)
};

Environment environment();

/// "2.13.0", without looking at the machine.
std::string libtorch_version();

}  // namespace gradflow
