#include "kernels/arena.h"

#include <algorithm>

namespace gradflow {
namespace {

constexpr std::size_t large_page = std::size_t{2} << 20;
constexpr std::size_t block_size = 8 * large_page;

constexpr std::size_t rounded_up(std::size_t size, std::size_t unit) { return (size + unit - 1) / unit * unit; }

}  // namespace

std::size_t Arena::bytes_for(std::size_t count) {
  // Five lines between buffers: those of a power of two would otherwise fall on the same sets of the caches.
  constexpr std::size_t line = 64, gap = 5 * line;
  return rounded_up(count * sizeof(float), line) + gap;
}

float* Arena::floats(std::size_t count) {
  const std::size_t size = bytes_for(count);
  handed_out_ += size;
  if (size > left_) {
    const std::size_t taken = std::max(block_size, rounded_up(size, large_page));
    blocks_.push_back(map_memory(taken));
    bytes_ += taken;
    next_ = blocks_.back().get();
    left_ = taken;
  }
  float* const piece = reinterpret_cast<float*>(next_);
  next_ += size;
  left_ -= size;
  return piece;
}

}  // namespace gradflow
