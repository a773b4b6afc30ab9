#pragma once

#include <string>

#include "report/report.h"

namespace gradflow {

/// The square in a group's colour and its label.
std::string key_html(const ReportGroup& group);

}  // namespace gradflow
