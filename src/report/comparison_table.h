#pragma once

#include <string>
#include <vector>

#include "report/report.h"

namespace gradflow {

/// A cell of a table that is written as HTML and as Markdown.
struct ReportTableCell {
  std::string text;
  std::string note;                    ///< behind the text, paler: "± 0.047"
  std::string sort_key;                ///< what the page sorts by; empty: nothing to compare
  bool bad = false;                    ///< yellow
  const ReportGroup* group = nullptr;  ///< whose colour stands before the text
};

struct ReportTableColumn {
  std::string heading;
  bool number = false;  ///< flush right
};

struct ReportTable {
  std::vector<ReportTableColumn> columns;
  std::vector<std::vector<ReportTableCell>> rows;
};

/// One row a cell: where it stands on each axis, outcomes, final loss, gradient over depth, stream variance, spikes,
/// speed. Columns that nothing was measured for are left out.
ReportTable comparison_table(const Report& report);

/// As a table that its headings sort.
std::string sortable_html(const ReportTable& table, const std::string& label);
std::string table_markdown(const ReportTable& table);

}  // namespace gradflow
