#include "config/text.h"

#include <gtest/gtest.h>

namespace gradflow {
namespace {

TEST(Text, ShowsControlCharactersAndBrokenBytesAsEscapes) {
  EXPECT_EQ(shown("a\nb"), "a\\u000ab");
  EXPECT_EQ(shown("a\xff"), "a\\xff");
  EXPECT_EQ(shown("α"), "α");
  EXPECT_EQ(in_quotes("x"), "\"x\"");
}

TEST(Text, CutsWhatIsLongButNoPath) {
  const std::string text(200, 'x');
  EXPECT_LT(shown(text).size(), 70u);
  EXPECT_TRUE(shown(text).ends_with("…"));
  EXPECT_EQ(shown_path(text), text);
}

TEST(Text, FindsTheFirstByteThatIsNotUtf8) {
  EXPECT_EQ(first_invalid_utf8("aβ€𝄞"), std::nullopt);
  EXPECT_EQ(first_invalid_utf8("a\xff"), 1u);
  EXPECT_EQ(first_invalid_utf8("\xc0\x80"), 0u) << "overlong";
  EXPECT_EQ(first_invalid_utf8("\xe0\x80\x80"), 0u) << "overlong";
  EXPECT_EQ(first_invalid_utf8("ab\xed\xa0\x80"), 2u) << "surrogate";
  EXPECT_EQ(first_invalid_utf8("\xf4\x90\x80\x80"), 0u) << "beyond U+10FFFF";
  EXPECT_EQ(first_invalid_utf8("\xe2\x82"), 0u) << "cut off";
}

}  // namespace
}  // namespace gradflow
