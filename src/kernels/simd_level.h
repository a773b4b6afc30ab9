#pragma once

#include <string>
#include <vector>

namespace gradflow {

/// The instruction sets that the kernels were compiled for and this processor has, best first; the last is "scalar".
std::vector<std::string> simd_levels();
/// The one in use: the best, unless another was forced.
std::string simd_level();
/// For tests and for comparing: all kernels run at `level`, one of simd_levels(). Empty: the best again.
void force_simd_level(const std::string& level);

}  // namespace gradflow
