#pragma once

#include <cstdint>

#include "config/config.h"

namespace gradflow {

/// V: configured, else what the task takes. Throws Error when it is below `least`.
std::int64_t vocabulary_of(const DataConfig& data, std::int64_t least);

/// Throws Error when fewer than `least` tokens of the context are left beside the padding.
void require_tokens(const DataConfig& data, std::int64_t least);

}  // namespace gradflow
