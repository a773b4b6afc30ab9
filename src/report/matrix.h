#pragma once

#include <string>

#include "report/report.h"

namespace gradflow {

/// "What trains?": a row a group, a column a panel, one mark a seed. Further axes become columns while there is room
/// beside the findings, else rows.
std::string matrix_html(const Report& report);
std::string matrix_markdown(const Report& report);
/// Whether the matrix needs the whole width of the page.
bool matrix_is_wide(const Report& report);

/// The mark of an outcome as a little picture in the colour of the text, with a tooltip.
std::string outcome_mark(Outcome outcome, const std::string& tooltip);

}  // namespace gradflow
