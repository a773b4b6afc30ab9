#include "output/text_table.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace gradflow {
namespace {

TEST(DisplayWidth, CountsCodePoints) {
  EXPECT_EQ(display_width("loss"), 4u);
  EXPECT_EQ(display_width("H₁ ± α"), 6u);
  EXPECT_EQ(display_width(""), 0u);
}

TEST(TextTable, SetsNumbersFlushRightAndWordsFlushLeft) {
  TextTable table({"placement", "loss", "spikes"});
  table.add({"pre", "1.7", "0"});
  table.add({"deepnorm", "nan", "12"});
  table.add({"–", "-inf", ""});
  EXPECT_EQ(table.text(),
            "placement  loss  spikes\n"
            "pre         1.7       0\n"
            "deepnorm    nan      12\n"
            "–          -inf\n");
}

TEST(TextTable, OneWordMakesAColumnOfWords) {
  TextTable table({"verdict"});
  table.add({"12"});
  table.add({"learned"});
  EXPECT_EQ(table.text(), "verdict\n12\nlearned\n");
}

TEST(TextTable, AlignsTextBeyondAscii) {
  TextTable table(2);
  table.add({"H₁", "3.95"});
  table.add({"rate", "1.2 ± 0.1"});
  EXPECT_EQ(table.text(2), "  H₁         3.95\n  rate  1.2 ± 0.1\n");
}

TEST(TextTable, RefusesARowOfAnotherLength) {
  TextTable table(2);
  EXPECT_THROW(table.add({"one"}), std::logic_error);
}

}  // namespace
}  // namespace gradflow
