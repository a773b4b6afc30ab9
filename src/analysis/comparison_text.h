#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "analysis/comparison.h"

namespace gradflow {

/// The comparison for people, at most `width` columns where that can be done, with a line or two that say what the
/// columns are. Columns in which no group has anything are left out.
std::string comparison_text(const Comparison& comparison, std::size_t width);

/// The same table in Markdown.
std::string comparison_markdown(const Comparison& comparison);

/// One row a group: the keys of the study by their full paths, then comparison_columns().
std::string comparison_csv(const Comparison& comparison);

/// {"keys", "groups": [{"values", "runs": [{"path", "seed", "status", "verdict", "final_loss"}], "result"}],
/// "left_out"}: `result` holds comparison_columns(); numbers that are not finite are null.
Json comparison_json(const Comparison& comparison, std::span<const LeftOut> left_out);

/// comparison_text of the runs in these folders, for the end of a sweep. What cannot be used is left out without a
/// word; empty when nothing is left.
std::string comparison_of_folders(std::span<const std::string> folders, std::size_t width);

}  // namespace gradflow
