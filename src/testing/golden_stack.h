#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "config/config.h"
#include "model/batch.h"
#include "model/stack.h"

namespace gradflow::testing {

/// A number of a golden case and what a stack makes of it.
struct GoldenQuantity {
  std::string kind;  ///< "logit", "stream_grad_norm", …
  std::string place;
  double measured = 0;
  double expected = 0;
  double floor = 0;  ///< deviations that count as rounding of zero, in units of the relative tolerance
};

/// Runs one forward and backward of the stack that `config` describes: loss, logits, the gradient norm of every
/// parameter and every site of the golden case.
std::vector<GoldenQuantity> golden_quantities(const nlohmann::json& golden, const Config& config, const Batch& batch,
                                              bool recompute, const SegmentFactory& make_segments,
                                              at::Device device = at::kCPU);
/// The same of the reference backend on the CPU, for a configuration in float32, after each weight was moved to the
/// float above or below with probability ½: what the rounding of float32 does to this case. `draw`: which of many.
std::vector<GoldenQuantity> golden_quantities_rounded(const nlohmann::json& golden, const Config& config,
                                                      const Batch& batch, std::uint32_t draw);

/// Expects `golden_quantities` of the reference backend on the test device to 1e-9 relative in float64, 1e-4 otherwise.
void expect_golden(const nlohmann::json& golden, const Config& config, const Batch& batch, bool recompute);

}  // namespace gradflow::testing
