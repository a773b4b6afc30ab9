#pragma once

#include <span>
#include <string>

namespace gradflow {

/// "59 %": the time of the matrix products alone divided by that of a step.
std::string gemm_share_text(double share);

/// What to say of shares that read as more than 100 %, which no step can have: a line for below the table; empty where
/// there is none.
std::string gemm_share_note(std::span<const double> shares);

}  // namespace gradflow
