#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "config/config.h"

namespace gradflow {

/// Why the fused backend cannot run a configuration.
struct FusedObstacle {
  std::string_view key;  ///< whose value stands against it
  std::string fault;     ///< "model.dropout is 0.1"
  std::string remedy;    ///< "write 0"
};

/// The first obstacle; absent: the fused backend runs it. The device is judged by its name alone: `auto` counts as
/// none.
std::optional<FusedObstacle> fused_obstacle(const Config& config);

}  // namespace gradflow
