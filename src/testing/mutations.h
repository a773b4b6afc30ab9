#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/philox.h"

namespace gradflow::testing {

/// A stream of small decisions for a structured fuzzer, the same for the same seed on every machine.
class Dice {
 public:
  Dice(std::uint64_t seed, std::string_view name) : stream_(seed, name) {}
  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(stream_.below(bound, next_++)); }
  bool one_in(std::size_t n) { return below(n) == 0; }
  template <class List>
  const auto& of(const List& list) {
    return list[below(std::size(list))];
  }

 private:
  RandomStream stream_;
  std::uint64_t next_ = 0;
};

/// The text with one to four accidents: bytes changed, removed, doubled, pieces moved, numbers and words that are often
/// mishandled put in, the end cut off.
inline std::string mutated(std::string text, Dice& dice) {
  static constexpr std::array<std::string_view, 24> traps = {
      "1e999", "-1", "NaN", "\"\"", "null",    "9223372036854775808", "0.1e-400", "{",  "}",
      "[",     "]",  ",",   ":",    "\\u0000", "\"\\ud800\"",         "\xff\xfe", "//", "/*",
      "\n",    "\"", "1e2", "-0",   "true",    "18446744073709551616"};
  for (std::size_t accidents = 1 + dice.below(4); accidents > 0; --accidents) {
    const std::size_t at = dice.below(text.size() + 1), length = std::min(1 + dice.below(16), text.size() - at);
    switch (dice.below(7)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << dice.below(8)));
        break;
      case 1: text.erase(at, length); break;
      case 2: text.insert(at, text.substr(at, length)); break;
      case 3: text.insert(at, dice.of(traps)); break;
      case 4: text.replace(at, length, dice.of(traps)); break;
      case 5: text.insert(dice.below(text.size() + 1), text.substr(at, length)); break;
      case 6:
        if (dice.one_in(4)) text.resize(at);
        break;
    }
  }
  return text;
}

}  // namespace gradflow::testing
