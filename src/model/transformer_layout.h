#pragma once

#include "model/layout.h"

namespace gradflow {

/// Embedding, attention and feed-forward of each block, final norm where there is one, head.
Layout transformer_layout(const Config& config);

}  // namespace gradflow
