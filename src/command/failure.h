#pragma once

#include <exception>
#include <string>
#include <vector>

namespace gradflow {

/// What an exception says to the user, one line or more, in the form of `Error`: its lines, or what a lack of memory or
/// a surprise inside a library means.
std::vector<std::string> failure_lines(const std::exception& failure);

}  // namespace gradflow
