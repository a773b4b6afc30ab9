#pragma once

#include <string>

#include "report/assets.h"
#include "report/report.h"

namespace gradflow {

/// The whole report as one HTML file that opens from disk and loads nothing: tables, findings and configuration as
/// plain HTML, pictures drawn by the script from a block of data. Without uPlot in `assets` the line pictures are
/// static.
std::string page_html(const Report& report, const ReportAssets& assets);

}  // namespace gradflow
