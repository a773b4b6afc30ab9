#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gradflow {

/// The text broken between words into lines of at most `width` columns where words allow, each ended. The first line
/// begins with `label`, the others with as many blanks.
std::string paragraph(std::string_view label, std::string_view text, std::size_t width = 100);

}  // namespace gradflow
