#include "output/paragraph.h"

#include <gtest/gtest.h>

namespace gradflow {
namespace {

TEST(Paragraph, BreaksBetweenWordsBelowTheLabel) {
  EXPECT_EQ(paragraph("ffn  ", "x + a·F(x), a learned, starts at 0", 20),
            "ffn  x + a·F(x), a\n"
            "     learned, starts\n"
            "     at 0\n");
}

TEST(Paragraph, FillsTheWidthToTheLastColumn) {
  EXPECT_EQ(paragraph("", "ab cd ef", 5), "ab cd\nef\n");
  EXPECT_EQ(paragraph("", "ab cde ef", 5), "ab\ncde\nef\n");
}

TEST(Paragraph, LetsALongWordStand) { EXPECT_EQ(paragraph("- ", "abcdefgh i", 5), "- abcdefgh\n  i\n"); }

TEST(Paragraph, ShortTextsAreOneLine) {
  EXPECT_EQ(paragraph("a ", "b"), "a b\n");
  EXPECT_EQ(paragraph("a", ""), "a\n");
}

}  // namespace
}  // namespace gradflow
