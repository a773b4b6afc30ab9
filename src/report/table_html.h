#pragma once

#include <string>

#include "report/report.h"

namespace gradflow {

/// The square in a group's colour.
std::string ink_html(Ink ink);
/// The same and its label.
std::string key_html(const ReportGroup& group);

}  // namespace gradflow
