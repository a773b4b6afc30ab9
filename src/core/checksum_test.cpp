#include "core/checksum.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace gradflow {
namespace {

std::uint64_t checksum(const std::string& text, std::size_t piece = 1000) {
  Checksum sum;
  for (std::size_t at = 0; at < text.size(); at += piece)
    sum.add(std::as_bytes(std::span(text).subspan(at, std::min(piece, text.size() - at))));
  return sum.value();
}

std::string sample() {
  std::string text;
  for (int i = 0; i < 83; ++i) text += static_cast<char>(i * 37);
  return text;
}

TEST(Checksum, DoesNotDependOnHowTheBytesAreCut) {
  const std::string text = sample();
  for (const std::size_t piece : {1, 3, 7, 8, 9, 64, 83}) EXPECT_EQ(checksum(text, piece), checksum(text)) << piece;
}

TEST(Checksum, ShowsEveryFlippedBit) {
  std::set<std::uint64_t> seen{checksum(sample())};
  for (std::size_t bit = 0; bit < 8 * sample().size(); ++bit) {
    std::string text = sample();
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << bit % 8));
    EXPECT_TRUE(seen.insert(checksum(text)).second) << bit;
  }
}

TEST(Checksum, ShowsAMissingEndAndZerosAtTheEnd) {
  std::set<std::uint64_t> seen;
  for (std::size_t size = 0; size < sample().size(); ++size)
    EXPECT_TRUE(seen.insert(checksum(sample().substr(0, size))).second) << size;
  EXPECT_NE(checksum("abc"), checksum(std::string("abc\0", 4)));
}

TEST(Checksum, ShowsSignsThatChangedTogether) {
  // The top bits of two words: what a plain multiplication would let cancel.
  std::string text = sample();
  text[7] = static_cast<char>(text[7] ^ 0x80);
  text[15] = static_cast<char>(text[15] ^ 0x80);
  EXPECT_NE(checksum(text), checksum(sample()));
}

}  // namespace
}  // namespace gradflow
