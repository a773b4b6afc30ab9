#pragma once

#include "config/config.h"
#include "model/layout.h"
#include "model/memory_estimate.h"

namespace gradflow {

/// What a run of `config` (resolved) takes on the CPU with that backend, in bytes: `memory_estimate` of model/, with
/// the buffers of the fused stack in place of what autograd keeps.
MemoryEstimate memory_estimate(const Config& config, const Layout& layout, Backend backend);

/// Bytes that the segments of a fused stack cut from their arena.
struct FusedBuffers {
  double activations = 0;
  double logits = 0;
};
FusedBuffers fused_buffers(const Config& config);

}  // namespace gradflow
