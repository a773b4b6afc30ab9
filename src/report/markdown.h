#pragma once

#include <span>
#include <string>

#include "report/pictures.h"
#include "report/report.h"

namespace gradflow {

/// The report as Markdown: the same matrix, findings, tables and formulas, with the pictures as links to their files
/// beside it.
std::string report_markdown(const Report& report, std::span<const Picture> pictures);

}  // namespace gradflow
