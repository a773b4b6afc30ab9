#include "output/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <limits>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "config/quantities.h"
#include "core/error.h"
#include "testing/temporary_folder.h"

namespace gradflow {
namespace {

constexpr std::array<Column, 3> three{{{"step", "which"}, {"loss", "how much"}, {"word", "what"}}};

TEST(Columns, StandAsTheyAreSpecified) {
  EXPECT_EQ(header_line(steps_columns()),
            "step,tokens,learning_rate,loss,grad_norm,clip_factor,weight_norm,update_norm,eval_loss,spike_loss,"
            "spike_grad_norm,nonfinite");
  EXPECT_EQ(header_line(layers_columns()),
            "step,layer,sublayer,grad_norm,weight_norm,update_norm,update_ratio,norm_input_rms,stream_mean,"
            "stream_variance,stream_rms,stream_grad_norm,branch_rms,branch_ratio,nonfinite,branch_cosine,"
            "branch_variance_gain,token_norm_cv,branch_norm_cv,mean_share,stream_grad_cosine,dual_rms,dual_grad_norm,"
            "skip_grad_share,attention_entropy,attention_logit_max,zero_fraction,angular_distance,token_diversity_db");
  EXPECT_EQ(header_line(tensors_columns()), "step,tensor,grad_norm,weight_norm,update_norm,update_ratio,spectral_norm");
  EXPECT_EQ(header_line(spikes_columns()),
            "series,kind,start_step,peak_step,end_step,level_before,peak,score,recovered,first_step,first_layer,"
            "first_sublayer,first_quantity,first_score");
  EXPECT_EQ(header_line(timing_columns()), "step,seconds,tokens_per_second,recording_share");
  EXPECT_EQ(header_line(quantities_columns()), "step,layer,sublayer,quantity,value");
}

TEST(Columns, AreNamedOnceEachAndExplained) {
  for (const auto columns : {steps_columns(), layers_columns(), tensors_columns(), spikes_columns(), timing_columns(),
                             quantities_columns()}) {
    std::set<std::string_view> names;
    for (const Column& column : columns) {
      EXPECT_TRUE(names.insert(column.name).second) << column.name;
      EXPECT_FALSE(column.meaning.empty()) << column.name;
      EXPECT_EQ(column.meaning.find_first_of("|\n"), std::string_view::npos) << column.name << " breaks the table";
    }
  }
}

TEST(Columns, OfLayersAreWhatTheConfigurationMayName) {
  std::vector<std::string_view> columns, quantities;
  for (const Column& column : layers_columns().subspan(3)) columns.push_back(column.name);
  for (const Quantity& quantity : measured_quantities())
    if (quantity.set != QuantitySet::on_demand) quantities.push_back(quantity.name);
  EXPECT_EQ(columns, quantities);
}

TEST(ColumnTable, IsMarkdown) {
  EXPECT_EQ(column_table(std::span(three).first(2)),
            "| column | meaning |\n| --- | --- |\n| `step` | which |\n| `loss` | how much |\n");
}

TEST(CsvFile, WritesEveryKindOfCell) {
  const TemporaryFolder folder;
  CsvFile file(folder / "a.csv", three);
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  file.write(std::array<Cell, 3>{std::int64_t{1}, 0.1, "attention"});
  file.write(std::array<Cell, 3>{std::int64_t{2}, Cell{}, std::string()});
  file.write(std::array<Cell, 3>{nan, -infinity, infinity});
  file.write(std::array<Cell, 3>{-nan, 4e-25, cell(std::nullopt)});
  file.write(std::array<Cell, 3>{cell(-0.0), 1.0 / 3, std::numeric_limits<std::int64_t>::max()});
  file.flush();
  EXPECT_EQ(
      read_file(folder / "a.csv"),
      "step,loss,word\n1,0.1,attention\n2,,\nnan,-inf,inf\nnan,4e-25,\n-0,0.3333333333333333,9223372036854775807\n");
}

TEST(CsvFile, ShowsItsHeaderAtOnceAndWholeLinesAfterAFlush) {
  const TemporaryFolder folder;
  CsvFile file(folder / "a.csv", three);
  EXPECT_EQ(read_file(folder / "a.csv"), "step,loss,word\n");
  for (std::int64_t step = 1; step <= 100'000; ++step) file.write(std::array<Cell, 3>{step, 0.5, "x"});
  EXPECT_EQ(read_file(folder / "a.csv").back(), '\n');  // what left by itself ends with a line
  file.flush();
  EXPECT_TRUE(read_file(folder / "a.csv").ends_with("\n100000,0.5,x\n"));
}

TEST(CsvFile, RefusesRowsThatWouldBreakTheTable) {
  const TemporaryFolder folder;
  CsvFile file(folder / "a.csv", three);
  EXPECT_THROW(file.write(std::array<Cell, 2>{std::int64_t{1}, 2.0}), std::logic_error);
  for (const char* word : {"a,b", "a\"b", "a\nb", "a\rb"})
    EXPECT_THROW(file.write(std::array<Cell, 3>{std::int64_t{1}, 2.0, word}), std::logic_error) << word;
  file.flush();
  EXPECT_EQ(read_file(folder / "a.csv"), "step,loss,word\n");
}

TEST(CsvFile, NamesTheFileThatCannotBeWritten) {
  const TemporaryFolder folder;
  const auto message = [&](const std::string& path) -> std::string {
    try {
      CsvFile file(path, three);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(message("/dev/full"),
              testing::StartsWith("/dev/full: cannot be written (No space left on device); free"));
  EXPECT_THAT(message(folder / "absent/a.csv"), testing::StartsWith(folder / "absent/a.csv: cannot be written ("));
}

TEST(CsvFile, ReportsAFolderThatVanished) {
  const TemporaryFolder folder;
  create_folders(folder / "run");
  CsvFile file(folder / "run/a.csv", three);
  std::filesystem::remove_all(folder / "run");
  file.write(std::array<Cell, 3>{std::int64_t{1}, 0.5, "x"});
  EXPECT_THROW(file.flush(), Error);
}

TEST(CsvText, QuotesOnlyWhatNeedsIt) {
  EXPECT_EQ(csv_text(std::string_view("results/a=1_b")), "results/a=1_b");
  EXPECT_EQ(csv_text(std::string_view("a,b")), "\"a,b\"");
  EXPECT_EQ(csv_text(std::string_view("5\" disk\n")), "\"5\"\" disk\n\"");
  EXPECT_EQ(csv_text(Cell{}), "");
  EXPECT_EQ(csv_text(Cell{0.1}), "0.1");
  EXPECT_EQ(csv_text(Cell{std::int64_t{-3}}), "-3");
  EXPECT_EQ(csv_text(Cell{std::string("x,y")}), "\"x,y\"");
}

}  // namespace
}  // namespace gradflow
