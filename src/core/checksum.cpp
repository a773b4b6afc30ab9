#include "core/checksum.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace gradflow {
namespace {

std::uint64_t stirred(std::uint64_t state, const std::byte* eight) {
  std::uint64_t word;
  std::memcpy(&word, eight, sizeof word);
  const std::uint64_t product = std::rotl(state ^ word, 29) * 0x9e3779b97f4a7c15U;
  return product ^ (product >> 32);  // a product alone leaves its top bit to meet the next word's
}

}  // namespace

void Checksum::add(std::span<const std::byte> bytes) {
  const std::size_t kept = count_ % 8;
  count_ += bytes.size();
  if (kept > 0) {
    const std::size_t taken = std::min(8 - kept, bytes.size());
    std::copy_n(bytes.begin(), taken, rest_.begin() + static_cast<std::ptrdiff_t>(kept));
    bytes = bytes.subspan(taken);
    if (kept + taken < 8) return;
    state_ = stirred(state_, rest_.data());
  }
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) state_ = stirred(state_, bytes.data());
  std::copy(bytes.begin(), bytes.end(), rest_.begin());
}

std::uint64_t Checksum::value() const {
  std::array<std::byte, 8> last{};
  std::copy_n(rest_.begin(), count_ % 8, last.begin());
  return stirred(state_, last.data()) ^ count_;
}

}  // namespace gradflow
