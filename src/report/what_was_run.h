#pragma once

#include <string>
#include <vector>

#include "report/report.h"

namespace gradflow {

// What exactly was run: facts of the header, formulas, configuration.

/// Short facts, one each: how many runs of what, task, length, dates, versions, device, what was left out.
std::vector<std::string> header_facts(const Report& report);

/// A row a group: its sub-layers as formulas, what follows the last block, constants, parameters.
std::string formulas_html(const Report& report);
std::string formulas_markdown(const Report& report);

/// The configuration that all runs share, as JSON without the keys that differ.
std::string common_configuration(const Report& report);

}  // namespace gradflow
