#pragma once

#include <cstddef>
#include <vector>

#include "core/mapped_memory.h"

namespace gradflow {

/// Memory that lives as long as a stack, handed out piece by piece and never given back singly: every buffer of the
/// fused backend is cut from it before the first step.
class Arena {
 public:
  /// `count` floats on a 64-byte boundary, zero.
  float* floats(std::size_t count);
  /// Bytes handed out, and what one piece of so many floats adds to them.
  std::size_t handed_out() const { return handed_out_; }
  static std::size_t bytes_for(std::size_t count);

 private:
  std::vector<MappedMemory> blocks_;
  std::byte* next_ = nullptr;
  std::size_t left_ = 0;
  std::size_t handed_out_ = 0;
};

}  // namespace gradflow
