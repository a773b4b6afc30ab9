#pragma once

#include "config/config.h"
#include "model/layout.h"
#include "model/memory_estimate.h"

namespace gradflow {

/// What a run of `config` (resolved) takes on the CPU with that backend, in bytes: `memory_estimate` of model/, with
/// the buffers of the fused stack in place of what autograd keeps.
MemoryEstimate memory_estimate(const Config& config, const Layout& layout, Backend backend);

/// Bytes of the buffers of a fused stack.
struct FusedBuffers {
  double activations = 0;   ///< in the arena of its segments
  double logits = 0;        ///< there too
  double group_inputs = 0;  ///< under recompute, in the stack
};
FusedBuffers fused_buffers(const Config& config, const Layout& layout);

}  // namespace gradflow
