#pragma once

#include <cstdint>

#include "model/layout.h"

namespace gradflow {

/// Colours of an image.
inline constexpr std::int64_t image_channels = 3;

/// Features (mlp) or channels (resnet) that enter the stem. An mlp takes an image as one long vector.
std::int64_t stem_inputs(const Config& config);
/// Numbers that the head gives for a sample: one a class; for the task `identity` one a feature.
std::int64_t head_outputs(const Config& config);

/// Width of the stream after block `block` (from 1; 0: after the stem) of an mlp or resnet. A resnet has three stages
/// of N/3 blocks with w, 2w and 4w channels (He et al. 2015, section 4.2).
std::int64_t stream_width(const ModelConfig& model, std::int64_t block);
/// Name of a block's only sub-layer: `dense` or `conv`.
const char* block_sublayer(StackKind stack);

/// Stem, blocks, final norm where there is one, head of an mlp or resnet.
Layout feedforward_layout(const Config& config);

}  // namespace gradflow
