#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

namespace gradflow {

/// Memory that will be needed soon, in the order in which it will be. Kernels fetch from the front of it into the
/// second-level cache, line by line, while they compute: what the forward pass kept, the weights and the gradients of
/// the next sub-layer lie in a cache further out by the time they are needed.
class FetchAhead {
 public:
  static constexpr std::size_t line = 64 / sizeof(float);
  struct Lines {
    const float* first = nullptr;
    std::size_t count = 0;
    /// Line `i`, if there are as many.
    void fetch(std::size_t i) const {
      if (i < count) __builtin_prefetch(first + i * line, /*for writing=*/0, /*locality=*/2);
    }
  };

  /// Forgets what has not been fetched.
  void restart() { next_ = end_ = 0; }
  /// `count` floats from `from` on; left out where so many regions were added since the restart that no room is left.
  void add(const float* from, std::size_t count) {
    if (end_ < regions_.size()) regions_[end_++] = {from, (count + line - 1) / line};
  }
  /// Takes at most `most` lines, which lie one behind the other, from the front.
  Lines take(std::size_t most) {
    if (next_ == end_) return {};
    Lines& region = regions_[next_];
    const Lines taken{region.first, std::min(most, region.count)};
    region.first += taken.count * line;
    region.count -= taken.count;
    if (region.count == 0) ++next_;
    return taken;
  }

  /// Fetches as many at once.
  void fetch(std::size_t lines) {
    while (lines > 0) {
      const Lines taken = take(lines);
      if (taken.count == 0) return;
      for (std::size_t i = 0; i < taken.count; ++i) taken.fetch(i);
      lines -= taken.count;
    }
  }

 private:
  std::array<Lines, 16> regions_;
  std::size_t next_ = 0, end_ = 0;
};

}  // namespace gradflow
