#include "output/csv_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "core/error.h"
#include "core/files.h"
#include "core/philox.h"
#include "testing/temporary_folder.h"

namespace gradflow {
namespace {

constexpr std::array<Column, 2> two{{{"step", "which"}, {"loss", "how much"}}};

template <class Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(CsvTable, FindsColumnsByNameAndCellsByPlace) {
  const CsvTable table("a.csv", "step,sublayer,loss\n1,ffn,0.5\n2,,\n");
  EXPECT_EQ(table.columns(), (std::vector<std::string>{"step", "sublayer", "loss"}));
  EXPECT_EQ(table.rows(), 2u);
  EXPECT_EQ(table.column("loss"), 2u);
  EXPECT_EQ(table.text(0, 1), "ffn");
  EXPECT_EQ(table.integer(1, 0), 2);
  EXPECT_EQ(table.number(0, 2), 0.5);
  EXPECT_FALSE(table.number(1, 2));
}

TEST(CsvTable, TellsNanFromNotMeasured) {
  const CsvTable table("a.csv", "x,y\nnan,\n-inf,inf\n");
  EXPECT_TRUE(std::isnan(table.number(0, 0).value()));
  EXPECT_FALSE(table.number(0, 1));
  EXPECT_EQ(table.number(1, 0), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(table.number(1, 1), std::numeric_limits<double>::infinity());
}

TEST(CsvTable, DropsATornLastLine) {
  EXPECT_EQ(CsvTable("a.csv", "x,y\n1,2\n3,4").rows(), 1u);
  EXPECT_EQ(CsvTable("a.csv", "x,y\n1,2\n3").rows(), 1u);
  EXPECT_EQ(CsvTable("a.csv", "x,y\n").rows(), 0u);
}

TEST(CsvTable, TakesLinesThatEndInCrLf) {
  const CsvTable table("a.csv", "x,y\r\n1,2\r\n");
  EXPECT_EQ(table.columns()[1], "y");
  EXPECT_EQ(table.text(0, 1), "2");
}

TEST(CsvTable, KeepsItsCellsWhenItMoves) {
  CsvTable table("a.csv", "x\n1\n");
  const CsvTable moved(std::move(table));
  EXPECT_EQ(moved.text(0, 0), "1");
}

TEST(CsvTable, NamesWhatIsWrongAndWhere) {
  EXPECT_THAT(error_of([] { CsvTable("a.csv", ""); }), testing::StartsWith("a.csv: has no header; "));
  EXPECT_THAT(error_of([] { CsvTable("a.csv", "x,y"); }), testing::StartsWith("a.csv: has no header; "));
  EXPECT_THAT(error_of([] { CsvTable("a.csv", "x,y\n1,2\n3\n4,5\n"); }),
              testing::StartsWith("a.csv:3: has 1 cells where the header has 2; "));
  EXPECT_THAT(error_of([] { CsvTable("a.csv", "x,y\n1,2,3\n"); }), testing::StartsWith("a.csv:2: has 3 cells"));
  const CsvTable table("a.csv", "x,y\n1,2\n");
  EXPECT_EQ(error_of([&] { (void)table.column("loss"); }), "a.csv: has no column loss; it has x, y");
  const CsvTable words("a.csv", "x,y\n1,\n0.5,word\n");
  EXPECT_THAT(error_of([&] { (void)words.number(1, 1); }),
              testing::StartsWith("a.csv:3: y: \"word\" is not a number; "));
  EXPECT_THAT(error_of([&] { (void)words.integer(1, 0); }), testing::StartsWith("a.csv:3: x: \"0.5\" is not a whole"));
  EXPECT_THAT(error_of([&] { (void)words.integer(0, 1); }), testing::StartsWith("a.csv:2: y: \"\" is not a whole"));
}

TEST(ReadCsv, RefusesAnotherHeader) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.csv";
  write_file_atomically(path, "step,loss\n1,2\n");
  EXPECT_EQ(read_csv(path, two).rows(), 1u);
  write_file_atomically(path, "step,grad_norm\n1,2\n");
  EXPECT_EQ(
      error_of([&] { read_csv(path, two); }),
      path + ":1: column 2 is grad_norm where this version has loss; use the version that wrote it, or run again");
  write_file_atomically(path, "step\n1\n");
  EXPECT_THAT(error_of([&] { read_csv(path, two); }), testing::HasSubstr("column 2 is nothing where this version has"));
  write_file_atomically(path, "step,loss,more\n1,2,3\n");
  EXPECT_THAT(error_of([&] { read_csv(path, two); }),
              testing::HasSubstr("column 3 is more where this version has nothing"));
}

TEST(ReadCsv, ReadsBackTheBitsThatCsvFileWrote) {
  const TemporaryFolder folder;
  const RandomStream random(1, "csv");
  std::vector<double> values;
  for (std::uint64_t i = 0; values.size() < 5000; ++i)
    if (const double value = std::bit_cast<double>(random.bits(i)); !std::isnan(value)) values.push_back(value);
  {
    CsvFile file(folder / "a.csv", two);
    for (std::size_t i = 0; i < values.size(); ++i)
      file.write(std::array<Cell, 2>{static_cast<std::int64_t>(i), values[i]});
  }
  const CsvTable table = read_csv(folder / "a.csv", two);
  ASSERT_EQ(table.rows(), values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(table.integer(i, 0), static_cast<std::int64_t>(i));
    EXPECT_EQ(std::bit_cast<std::uint64_t>(table.number(i, 1).value()), std::bit_cast<std::uint64_t>(values[i]));
  }
}

}  // namespace
}  // namespace gradflow
