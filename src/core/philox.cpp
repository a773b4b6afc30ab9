#include "core/philox.h"

#include <cmath>
#include <numbers>

namespace gradflow {
namespace {

constexpr double two_to_minus_53 = 0x1p-53;

std::uint32_t low(std::uint64_t value) { return static_cast<std::uint32_t>(value); }
std::uint32_t high(std::uint64_t value) { return static_cast<std::uint32_t>(value >> 32); }
std::uint64_t joined(std::uint32_t low_word, std::uint32_t high_word) {
  return (std::uint64_t{high_word} << 32) | low_word;
}

std::array<std::uint32_t, 4> block(std::array<std::uint32_t, 2> key, std::uint64_t name_hash, std::uint64_t index) {
  return philox4x32({low(index), high(index), low(name_hash), high(name_hash)}, key);
}

}  // namespace

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  constexpr int rounds = 10;
  constexpr std::uint64_t multiplier_0 = 0xD2511F53, multiplier_1 = 0xCD9E8D57;
  constexpr std::uint32_t weyl_0 = 0x9E3779B9, weyl_1 = 0xBB67AE85;
  for (int round = 0; round < rounds; ++round) {
    const std::uint64_t product_0 = multiplier_0 * counter[0];
    const std::uint64_t product_1 = multiplier_1 * counter[2];
    counter = {high(product_1) ^ counter[1] ^ key[0], low(product_1), high(product_0) ^ counter[3] ^ key[1],
               low(product_0)};
    key[0] += weyl_0;
    key[1] += weyl_1;
  }
  return counter;
}

std::uint32_t fnv1a32(std::string_view text) {
  std::uint32_t hash = 0x811C9DC5;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x01000193;
  return hash;
}

std::uint64_t fnv1a64(std::string_view text) {
  std::uint64_t hash = 0xCBF29CE484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x00000100000001B3;
  return hash;
}

RandomStream::RandomStream(std::uint64_t seed, std::string_view name)
    : key_{low(seed), high(seed)}, name_hash_(fnv1a64(name)) {}

std::uint64_t RandomStream::bits(std::uint64_t index) const {
  const auto words = block(key_, name_hash_, index);
  return joined(words[0], words[1]);
}

double RandomStream::uniform(std::uint64_t index) const {
  return static_cast<double>(bits(index) >> 11) * two_to_minus_53;
}

double RandomStream::normal(std::uint64_t index) const {
  const auto words = block(key_, name_hash_, index);
  // The radius draws from (0, 1]: ln 0 would be infinite.
  const double radius_draw = static_cast<double>((joined(words[0], words[1]) >> 11) + 1) * two_to_minus_53;
  const double angle_draw = static_cast<double>(joined(words[2], words[3]) >> 11) * two_to_minus_53;
  return std::sqrt(-2 * std::log(radius_draw)) * std::cos(2 * std::numbers::pi * angle_draw);
}

std::uint64_t RandomStream::below(std::uint64_t bound, std::uint64_t index) const {
  // The upper half of the product maps 2^64 equally likely values onto `bound` cells whose sizes differ by one at most.
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((static_cast<Wide>(bits(index)) * bound) >> 64);
}

}  // namespace gradflow
