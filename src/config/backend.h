#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"

namespace gradflow {

/// One reason why the fused backend cannot run a configuration.
struct FusedObstacle {
  std::string_view key;  ///< whose value stands against it
  std::string fault;     ///< "model.dropout is 0.1"
  std::string remedy;    ///< "write 0"
};

/// All of them; none: the fused backend runs it. The device is judged by its name alone: `auto` counts as none.
std::vector<FusedObstacle> fused_obstacles(const Config& config);

/// "model.dropout is 0.1, model.qk_norm is true"
std::string faults_in_words(const std::vector<FusedObstacle>& obstacles);

/// The same, each with what would do: "model.dropout is 0.1 (write 0), model.qk_norm is true (write false)"
std::string remedies_in_words(const std::vector<FusedObstacle>& obstacles);

}  // namespace gradflow
