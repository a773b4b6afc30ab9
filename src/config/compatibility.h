#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/choices.h"

namespace gradflow {

// Which placements, residual forms, norms and tasks go together. One place: the check while reading
// and the README's table follow it.

std::vector<Placement> allowed_placements(StackKind stack);
std::vector<Residual> allowed_residuals(StackKind stack, Placement placement);
std::vector<Norm> allowed_norms(StackKind stack, Placement placement);
std::vector<Task> allowed_tasks(StackKind stack);

/// Why a placement restricts the residual forms or the norms, for messages; empty when it does not.
std::string_view why_no_other_residual(StackKind stack, Placement placement);
std::string_view why_no_other_norm(StackKind stack, Placement placement);

/// Markdown, one row for each stack and placement: what may be combined with it, and its source.
std::string compatibility_table();

/// The names of choices, for messages and tables.
template <class Choices>
std::vector<std::string_view> names_of_all(const Choices& choices) {
  std::vector<std::string_view> names;
  for (const auto choice : choices) names.push_back(name_of(choice));
  return names;
}

}  // namespace gradflow
