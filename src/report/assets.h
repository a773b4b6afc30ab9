#pragma once

#include <string_view>

namespace gradflow {

// The page's style and script, built into the program from the files of this folder (assets.cmake), and uPlot, which
// scripts/setup fetches. Empty where it was not there at build time: the line pictures of a page are static then.

struct ReportAssets {
  std::string_view style;          ///< report.css
  std::string_view script;         ///< report.js
  std::string_view chart_style;    ///< uplot.min.css
  std::string_view chart_script;   ///< uplot.iife.min.js
  std::string_view chart_licence;  ///< uplot_licence.txt; kept in every page that holds the two above

  bool interactive() const { return !chart_script.empty() && !chart_style.empty(); }
  /// The same without uPlot.
  ReportAssets without_charts() const { return {style, script, {}, {}, {}}; }
};

ReportAssets report_assets();

}  // namespace gradflow
