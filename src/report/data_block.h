#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "report/report.h"

namespace gradflow {

/// The numbers of the pictures as the page holds them.
struct DataBlock {
  std::string json;  ///< escaped for a <script> element
  /// What was left out so that the page stays small: "every 3rd layer step", empty when nothing was.
  std::string thinned;
};

/// A page is not to exceed this by its data: layer steps are left out evenly, first and last stay. The curves get two
/// fifths of it, then steps of theirs are left out too, but never the peak of a spike.
inline constexpr std::size_t page_limit = 2'500'000;

/// `other_bytes`: what the page needs beside its data. Numbers are float32, of float64 studies and beyond its range
/// float64.
DataBlock data_block(const Report& report, std::size_t other_bytes, std::size_t limit = page_limit);

/// Little-endian numbers in base64.
std::string base64_float32(std::span<const double> values);
std::string base64_float64(std::span<const double> values);

}  // namespace gradflow
