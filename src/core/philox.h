#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace gradflow {

/// Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"): the 128-bit block that a 128-bit
/// counter and a 64-bit key give. Stateless, so any value of a stream can be drawn at any time, on any thread.
std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key);

/// FNV-1a, 32 bits (the `sinusoid` initialization is defined with it) and 64 bits (names of streams, hashes of
/// configurations).
std::uint32_t fnv1a32(std::string_view text);
std::uint64_t fnv1a64(std::string_view text);

/// One named stream of random numbers: the key is the seed, the upper half of the counter is the hash of the name, the
/// lower half the index. The i-th value depends on nothing but (seed, name, i): streams never disturb one another, and
/// a run can be resumed by its position alone.
class RandomStream {
 public:
  RandomStream(std::uint64_t seed, std::string_view name);

  std::uint64_t bits(std::uint64_t index) const;
  /// Uniform in [0, 1), 53 bits.
  double uniform(std::uint64_t index) const;
  /// Standard normal, Box-Muller in double; never infinite.
  double normal(std::uint64_t index) const;
  /// Uniform integer in [0, bound), bound > 0, without modulo bias beyond 2^-64·bound.
  std::uint64_t below(std::uint64_t bound, std::uint64_t index) const;

 private:
  std::array<std::uint32_t, 2> key_;
  std::uint64_t name_hash_;
};

}  // namespace gradflow
