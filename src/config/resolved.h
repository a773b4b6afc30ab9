#pragma once

#include "config/config.h"
#include "config/kinds.h"

namespace gradflow {

/// The configuration with every plain number filled in that follows from other keys: ffn_width, residual_gate,
/// embedding_std, vocabulary (except for text by characters, where only the text tells). "auto" stays "auto".
Config resolved(Config config);

/// The resolved configuration as config.json has it: every key, in groups, "auto" and null where nothing else stands.
/// Numbers and integers read back to the same value.
Json to_json(const Config& config);

}  // namespace gradflow
