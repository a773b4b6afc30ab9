#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace gradflow {

/// A 64-bit checksum against damage, not against intent: eight bytes at a time, as fast as memory is read. Every step
/// can be undone, so that a change within eight bytes always shows. How the bytes are cut into pieces does not matter.
class Checksum {
 public:
  void add(std::span<const std::byte> bytes);
  std::uint64_t value() const;

 private:
  std::uint64_t state_ = 0xcbf29ce484222325U;
  std::uint64_t count_ = 0;
  std::array<std::byte, 8> rest_{};  // the bytes behind the last eight
};

}  // namespace gradflow
