#pragma once

#include <memory>
#include <vector>

#include "config/config.h"
#include "model/parameter_store.h"
#include "model/segment.h"

namespace gradflow {

/// The segments of an mlp or resnet on the reference backend, in the order of `make_layout(config).segments`: stem, one
/// segment a block, final norm where there is one, head with the loss. With weight layers W (dense, or 3×3
/// convolutions)
///   post (He et al. 2015, v1): x' = act(skip + N₂(W_out act(N₁(W_in x))))
///   pre  (He et al. 2016, v2): x' = skip + W_out act(N₂(W_in act(N₁(x)))), and act(final norm) before the head.
/// They use the parameters of `store`, which must outlive them.
std::vector<std::unique_ptr<Segment>> make_feedforward_stack(const Config& config, const ParameterStore& store);

}  // namespace gradflow
