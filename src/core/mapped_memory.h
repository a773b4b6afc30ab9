#pragma once

#include <cstddef>
#include <memory>

namespace gradflow {

/// Gives a block of `map_memory` back to the system.
struct Unmap {
  std::size_t bytes = 0;
  void operator()(std::byte* block) const;
};
using MappedMemory = std::unique_ptr<std::byte, Unmap>;

/// Zeros that take memory only where they are written, in huge pages where the system has them (thousands of small ones
/// cost more than the arithmetic on them), and that leave no hole in the heap when they go: for what is large and lives
/// long. Begins at a page. Throws std::bad_alloc.
MappedMemory map_memory(std::size_t bytes);

/// What buffers that are gone through side by side are put apart, beyond a round distance: at one, they would fall on
/// the same sets of the caches.
inline constexpr std::size_t cache_gap = 5 * 64;

/// Bytes of all blocks that there are now.
std::size_t mapped_bytes();

}  // namespace gradflow
