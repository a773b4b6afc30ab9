#pragma once

#include <span>
#include <string>
#include <vector>

#include "report/pictures.h"
#include "report/report.h"

namespace gradflow {

// What a report shows of the probes that it found: for each quantity its profile over the blocks, measured and as the
// closed form has it, and the tables that `probe` prints.

/// A probe with its profiles, and a name and an ink for each kind of stack: those of the same placement among runs.
ReportProbe make_report_probe(RecordedProbe probe);

/// "1 probe: 4 kinds of stacks, 2 depths, 3 seeds" of all of them.
std::string probes_fact(const Report& report);

/// One picture a probe and quantity, one panel a depth. Line: mean over seeds, band: its 95 % interval; dashed: lower
/// and upper end of the closed form. At most eight kinds of stacks are drawn, and what is not is said. The axis is
/// logarithmic where all is positive and spans more than a decade.
std::vector<Picture> probe_pictures(const Report& report);

/// The section's content: pictures in place, tables below them.
std::string probes_html(const Report& report);
/// The same, with links to the pictures' files.
std::string probes_markdown(const Report& report, std::span<const Picture> pictures);

/// What stands in the section before all probes, as plain text.
std::string probes_note();

}  // namespace gradflow
