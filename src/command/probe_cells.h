#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "config/config.h"

namespace gradflow {

/// What a probe varies; an empty list: only what the configuration has.
struct ProbeAxes {
  std::vector<std::int64_t> depths;
  std::vector<std::string> placements, norms, residuals, initializations;
  std::vector<std::string> quantities;  ///< in the place of record.quantities
};

/// The configurations of the stacks of a probe, each for one seed (that of the file): every placement with every norm,
/// residual form, initialization and depth, the last fastest. A combination that cannot be built is left out: what is
/// wrong with it joins `refused`, "placement=deepnorm norm=none: KEY: fault; remedy". Throws Error (usage) for a word
/// or depth that is none.
std::vector<Config> probe_cells(const std::string& path, std::span<const std::string> overrides, const ProbeAxes& axes,
                                std::vector<std::string>& refused);

}  // namespace gradflow
