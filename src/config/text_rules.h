#pragma once

#include "config/kinds.h"

namespace gradflow {

// What the texts of a configuration must look like. A rule knows nothing of other keys or of the file system.

extern const TextRule name_rule;      ///< one path component
extern const TextRule path_rule;      ///< a path
extern const TextRule device_rule;    ///< cpu, cuda, cuda:N, auto
extern const TextRule quantity_rule;  ///< a set or quantity of measurements.md

}  // namespace gradflow
