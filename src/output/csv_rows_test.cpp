#include "output/csv_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/files.h"
#include "testing/temporary_folder.h"

namespace gradflow {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::array<Column, 3> three{{{"step", ""}, {"word", ""}, {"loss", ""}}};
constexpr std::string_view loss_and_step[] = {"loss", "step"};

/// "LOSS@STEP" for each row, or the error.
std::vector<std::string> read(const std::string& text) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "a.csv", text);
  std::vector<std::string> rows;
  try {
    read_csv_rows(folder / "a.csv", three, loss_and_step, [&](const CsvRow& row) {
      rows.push_back(std::to_string(row.number(0)) + "@" + std::to_string(row.integer(1)));
    });
  } catch (const Error& error) {
    rows.emplace_back(std::string(error.what()).substr(folder.path().size() + 1));
  }
  return rows;
}

TEST(CsvRows, GiveTheWantedColumns) {
  EXPECT_THAT(read("step,word,loss\n1,a,0.5\n2,,inf\n3,c,\n"), ElementsAre("0.500000@1", "inf@2", "nan@3"));
  EXPECT_THAT(read("step,word,loss\r\n1,a,0.5\r\n"), ElementsAre("0.500000@1"));
}

TEST(CsvRows, ALineWithoutItsEndIsDropped) {
  EXPECT_THAT(read("step,word,loss\n1,a,0.5\n2,b,0.7"), ElementsAre("0.500000@1"));
  EXPECT_THAT(read("step,word,loss\n"), ElementsAre());
}

TEST(CsvRows, ACellInQuotesIsWhatTheyHold) {
  const TemporaryFolder folder;
  const std::string word = R"(a, "b", c; "")";
  write_file_atomically(folder / "a.csv",
                        "step,word,loss\n1," + csv_text(std::string_view(word)) + ",0.5\n2,\",\",7\n");
  constexpr std::string_view wanted[] = {"word", "loss"};
  std::vector<std::string> words;
  std::vector<double> losses;
  read_csv_rows(folder / "a.csv", three, wanted, [&](const CsvRow& row) {
    words.emplace_back(row.text(0));
    losses.push_back(row.number(1));
  });
  EXPECT_THAT(words, ElementsAre(word, ","));
  EXPECT_THAT(losses, ElementsAre(0.5, 7));
  EXPECT_THAT(read("step,word,loss\n1,\"a,0.5\n"), ElementsAre(HasSubstr("a.csv:2: has 2 cells")));
}

TEST(CsvRows, NameWhatIsWrong) {
  EXPECT_THAT(read("step,wo"), ElementsAre(HasSubstr("a.csv: has no header")));
  EXPECT_THAT(read("step,loss\n"), ElementsAre(HasSubstr("a.csv:1: column 2 is loss where this version has word")));
  EXPECT_THAT(read("step,word,loss\n1,a,0.5\n2,b\n"),
              ElementsAre("0.500000@1", HasSubstr("a.csv:3: has 2 cells where the header has 3")));
  EXPECT_THAT(read("step,word,loss\n1,a,0.5,9\n"), ElementsAre(HasSubstr("a.csv:2: has 4 cells")));
  EXPECT_THAT(read("step,word,loss\n1,a,0x5\n"), ElementsAre(HasSubstr("a.csv:2: loss: \"0x5\" is not a number")));
  EXPECT_THAT(read("step,word,loss\n1.5,a,5\n"), ElementsAre(HasSubstr("a.csv:2: step: \"1.5\" is not a whole")));
  constexpr std::string_view unknown[] = {"height"};
  EXPECT_THROW(read_csv_rows("a.csv", three, unknown, [](const CsvRow&) {}), std::logic_error);
}

TEST(HeaderFault, NamesTheFirstDifference) {
  EXPECT_EQ(header_fault("step,word,loss", three), "");
  EXPECT_THAT(header_fault("step,word", three), HasSubstr("column 3 is nothing where this version has loss"));
  EXPECT_THAT(header_fault("step,word,loss,more", three), HasSubstr("column 4 is more where this version has nothing"));
  EXPECT_THAT(header_fault("", three), HasSubstr("column 1 is  where this version has step"));
}

}  // namespace
}  // namespace gradflow
