#pragma once

#include <algorithm>
#include <cstddef>

namespace gradflow {

/// Memory that will be read soon, fetched into the second-level cache bit by bit while other work goes on: what the
/// forward pass kept lies in a cache further out by the time the backward pass needs it.
class Prefetch {
 public:
  /// `count` floats from `from` on, in `portions` calls of `next`.
  Prefetch(const float* from, std::size_t count, std::size_t portions)
      : at_(from), end_(from + count), portion_((count / std::max<std::size_t>(1, portions) / line + 1) * line) {}

  void next() {
    const float* const stop = at_ + std::min<std::size_t>(portion_, static_cast<std::size_t>(end_ - at_));
    for (; at_ < stop; at_ += line) __builtin_prefetch(at_, /*for writing=*/0, /*locality=*/2);
    at_ = stop;
  }

 private:
  static constexpr std::size_t line = 64 / sizeof(float);
  const float* at_;
  const float* end_;
  std::size_t portion_;
};

}  // namespace gradflow
