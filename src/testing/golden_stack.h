#pragma once

#include <nlohmann/json.hpp>

#include "config/config.h"
#include "model/batch.h"

namespace gradflow::testing {

/// Runs one forward and backward of the stack that `config` describes and expects loss, logits, the gradient norm of
/// every parameter and every site of the golden case: to 1e-9 relative in float64, 1e-4 otherwise.
void expect_golden(const nlohmann::json& golden, const Config& config, const Batch& batch, bool recompute);

}  // namespace gradflow::testing
