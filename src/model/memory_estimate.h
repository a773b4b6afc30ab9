#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "config/config.h"
#include "model/layout.h"

namespace gradflow {

/// Main memory that a run on the CPU takes at its peak, in bytes, from the configuration alone.
struct MemoryEstimate {
  double program = 0;      ///< the program, LibTorch and its BLAS
  double parameters = 0;   ///< values, gradients and the moments in use, with what the program knows of each tensor
  double activations = 0;  ///< what forward keeps for backward and the gradients that pass by; under recompute the
                           ///< inputs of the groups of layers and one group's inside
  double logits = 0;       ///< logits, their log-probabilities and gradients
  double data = 0;         ///< the text

  double total() const { return program + parameters + activations + logits + data; }
};

MemoryEstimate memory_estimate(const Config& config, const Layout& layout);

/// Bytes that lie between forward and backward of one micro-batch, without the logits: what autograd keeps of every
/// segment, or under recompute of the last group's, and the inputs of the groups.
double kept_bytes(const Config& config, const Layout& layout);

/// How many layers (embedding, blocks, what follows) are run again together under recompute; the groups begin at the
/// layers whose number it divides. So many that what is kept at a time, the inputs of the groups and the inside of one,
/// is within a third of the least: it grows with the root of the depth then, as the number does (Chen et al. 2016,
/// "Training Deep Nets with Sublinear Memory Cost", arXiv 1604.06174), and every layer is still run again no more than
/// once. The same whichever backend runs.
std::int64_t recompute_group(const Config& config, const Layout& layout);

/// Bytes of one tensor of logits (outputs of a regression).
double logit_bytes(const Config& config);

/// What to say when the estimate exceeds the `available` bytes, with what would lower it; else absent.
std::optional<std::string> memory_fault(const Config& config, const MemoryEstimate& estimate, std::int64_t available);

}  // namespace gradflow
