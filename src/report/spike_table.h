#pragma once

#include <string>

#include "report/report.h"

namespace gradflow {

/// The table and the pictures number this many spikes at most; more would bury what matters.
inline constexpr std::size_t most_spikes = 100;

/// One row a spike: run, series, step, level and peak, the sub-layer that moved first. `with_links`: a link to its
/// place in the curves.
std::string spike_table_html(const Report& report, bool with_links);
std::string spike_table_markdown(const Report& report);

}  // namespace gradflow
