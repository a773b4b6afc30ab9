#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/probe_profiles.h"

namespace gradflow {

// The tables of a probe, as `probe` prints them and the report shows them. "–" stands for what does not exist.

struct ProbeTableRow {
  std::size_t kind = 0;            ///< its place in probe_kinds
  std::vector<std::string> cells;  ///< one a heading
};

struct ProbeTable {
  std::vector<std::string> headings;  ///< first what the kinds differ in: placement, norm, residual, initialization
  std::vector<ProbeTableRow> rows;
};

/// The kinds of stacks, in the order in which they stand.
std::vector<ProbeKind> probe_kinds(std::span<const ProbeCell> cells);

/// The profiles of each cell, in the order of the cells.
using CellProfiles = std::vector<std::vector<ProbeProfile>>;
CellProfiles cell_profiles(std::span<const ProbeCell> cells);
/// The quantities that have a profile, in the order in which they were measured.
std::vector<std::string> profiled_quantities(const CellProfiles& profiles);

/// One row a profile: blocks 1 and N, first/last, rate a block (95 % interval over seeds in brackets), verdict, and at
/// how many sub-layers the closed form agrees.
ProbeTable profile_table(std::span<const ProbeCell> cells, const CellProfiles& profiles);
/// The rows of one quantity, and what the closed form gives for block N and for the rate, where it exists.
ProbeTable profile_table_of(std::span<const ProbeCell> cells, const CellProfiles& profiles, std::string_view quantity);
/// The numbers of whole stacks.
ProbeTable stack_table(std::span<const ProbeCell> cells);
/// The exponents of depth_exponents.
ProbeTable depth_table(std::span<const ProbeCell> cells);

}  // namespace gradflow
