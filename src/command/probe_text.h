#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "analysis/probe_profiles.h"

namespace gradflow {

/// The profiles of a probe and their change with depth, as tables for the terminal.
std::string probe_text(std::span<const ProbeCell> cells);

/// The same numbers in full: `profiles`, a list with one entry for each stack, depth and quantity; `numbers`, those of
/// whole stacks; `over_depth`, the exponents of N. What does not exist or is not finite is null.
nlohmann::ordered_json probe_json(std::span<const ProbeCell> cells);

}  // namespace gradflow
