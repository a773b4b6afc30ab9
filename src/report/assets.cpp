#include "report/assets.h"

namespace gradflow {

// Written by assets.cmake.
extern const std::string_view report_style, report_script, chart_style, chart_script, chart_licence;

ReportAssets report_assets() { return {report_style, report_script, chart_style, chart_script, chart_licence}; }

}  // namespace gradflow
