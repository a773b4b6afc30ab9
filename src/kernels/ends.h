#pragma once

#include <memory>

#include "config/config.h"
#include "kernels/workspace.h"
#include "model/segment.h"

namespace gradflow {

// What stands before the first and after the last block of a fused Transformer stack.

/// Tokens [B, T] → stream [B, T, d]: token and position embeddings, and the norm behind them where the model has one.
std::unique_ptr<Segment> make_fused_embedding(const Config& config, const ParameterStore& store,
                                              std::shared_ptr<Workspace> workspace);
std::unique_ptr<Segment> make_fused_final_norm(const Config& config, const ParameterStore& store,
                                               std::shared_ptr<Workspace> workspace);
/// Logits [B, T, V] and the mean cross-entropy over the tokens that have a target, in nats.
std::unique_ptr<Segment> make_fused_head(const Config& config, const ParameterStore& store,
                                         std::shared_ptr<Workspace> workspace);

}  // namespace gradflow
