#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace gradflow::testing {

/// How often a test by force is done: a little in every run of the tests, in full under scripts/torture.
inline std::size_t rounds(std::size_t in_short, std::size_t in_full) {
  return std::getenv("GRADFLOW_TORTURE") != nullptr ? in_full : in_short;
}

/// What the n-th of many cases is drawn from; scripts/torture may name another start.
inline std::uint64_t torture_seed() {
  const char* text = std::getenv("GRADFLOW_TORTURE_SEED");
  return text == nullptr ? 1 : std::strtoull(text, nullptr, 10);
}

}  // namespace gradflow::testing
