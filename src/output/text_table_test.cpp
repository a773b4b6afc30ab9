#include "output/text_table.h"

#include <gtest/gtest.h>

#include <algorithm>
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

TEST(TextTable, ATableThatIsTooWideIsSetAsSeveral) {
  TextTable table({"placement", "depth", "final loss", "verdict", "spikes"});
  table.add({"pre", "12", "1.68", "3 learned", "0"});
  table.add({"post", "6", "3.95 ± 0.01", "3 stuck", "12"});
  const std::string whole =
      "placement  depth   final loss    verdict  spikes\n"
      "pre           12         1.68  3 learned       0\n"
      "post           6  3.95 ± 0.01    3 stuck      12\n";
  EXPECT_EQ(table.text_within(48, 2), whole);
  EXPECT_EQ(table.text_within(1000, 2), whole);
  EXPECT_EQ(table.width_of_first(0), 0u);
  EXPECT_EQ(table.width_of_first(2), 16u);
  EXPECT_EQ(table.width_of_first(9), 48u);
  EXPECT_EQ(table.text_within(47, 2),
            "placement  depth   final loss    verdict\n"
            "pre           12         1.68  3 learned\n"
            "post           6  3.95 ± 0.01    3 stuck\n"
            "\n"
            "placement  depth  spikes\n"
            "pre           12       0\n"
            "post           6      12\n");
  // Too narrow for anything: one column at a time.
  const std::string narrow = table.text_within(1, 2);
  EXPECT_EQ(std::count(narrow.begin(), narrow.end(), '\n'), 11);
}

TEST(TextTable, RefusesARowOfAnotherLength) {
  TextTable table(2);
  EXPECT_THROW(table.add({"one"}), std::logic_error);
}

}  // namespace
}  // namespace gradflow
