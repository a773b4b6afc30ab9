#pragma once

#include <string>

#include "config/kinds.h"

namespace gradflow {

/// JSON Schema (2020-12) of a configuration file, from the field list: types, ranges, choices, defaults, meanings.
/// Combinations of keys are beyond it; `validate` checks them.
Json schema();

/// The field list as a Markdown table: key, type, default, range, meaning.
std::string key_table();

}  // namespace gradflow
