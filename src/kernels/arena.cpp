#include "kernels/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <new>

namespace gradflow {
namespace {

constexpr std::size_t large_page = std::size_t{2} << 20;
constexpr std::size_t block_size = 8 * large_page;

constexpr std::size_t rounded_up(std::size_t size, std::size_t unit) { return (size + unit - 1) / unit * unit; }

}  // namespace

void Arena::Free::operator()(std::byte* block) const { std::free(block); }

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
    auto* const block = static_cast<std::byte*>(std::aligned_alloc(large_page, taken));
    if (block == nullptr) throw std::bad_alloc();
    blocks_.emplace_back(block);
    ::madvise(block, taken, MADV_HUGEPAGE);  // a wish; without it everything works, slower
    bytes_ += taken;
    next_ = block;
    left_ = taken;
  }
  float* const piece = reinterpret_cast<float*>(next_);
  std::fill_n(piece, count, 0.0f);
  next_ += size;
  left_ -= size;
  return piece;
}

}  // namespace gradflow
