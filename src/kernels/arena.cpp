#include "kernels/arena.h"

#include <algorithm>

namespace gradflow {
namespace {

constexpr std::size_t block_size = std::size_t{16} << 20;

}  // namespace

std::size_t Arena::bytes_for(std::size_t count) {
  constexpr std::size_t line = 64;
  return (count * sizeof(float) + line - 1) / line * line + cache_gap;
}

float* Arena::floats(std::size_t count) {
  const std::size_t size = bytes_for(count);
  handed_out_ += size;
  if (size > left_) {
    left_ = std::max(block_size, size);
    blocks_.push_back(map_memory(left_));
    next_ = blocks_.back().get();
  }
  float* const piece = reinterpret_cast<float*>(next_);
  next_ += size;
  left_ -= size;
  return piece;
}

}  // namespace gradflow
