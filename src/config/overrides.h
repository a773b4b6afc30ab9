#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "config/faults.h"

namespace gradflow {

/// The keys that `given` may mean: itself where it is a full path, else all that end in it by whole components.
std::vector<std::string_view> keys_meant(std::string_view given, std::span<const std::string_view> keys);

/// Applies KEY=VALUE texts in order, the last one of a key wins. Faults name "--set KEY" as their place. Throws Error
/// with Exit::usage for a text without "=".
void apply_overrides(std::span<const std::string> overrides, Config& config, Origins& origins, Faults& faults);

}  // namespace gradflow
