#include "analysis/run_series.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <string>

#include "core/error.h"
#include "core/files.h"
#include "testing/made_run.h"
#include "testing/temporary_folder.h"

namespace gradflow {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::MadeRun;
using testing::make_run;
using testing::transformer_config;

template <class Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

class RunSeries : public ::testing::Test {
 protected:
  RunSeries() { make(made_); }
  void make(const MadeRun& made) {
    make_run(folder_ / "run", made);
    run_.path = folder_ / "run";
  }
  void append(const std::string& name, const std::string& text) {
    write_file_atomically(run_.file(name), read_file(run_.file(name)) + text);
  }

  TemporaryFolder folder_;
  MadeRun made_{.config = transformer_config(2, Placement::pre, 1), .steps = 3, .gradient_rate = -1};
  RecordedRun run_;
};

constexpr std::string_view loss_and_eval[] = {"loss", "eval_loss"};
constexpr std::string_view gradient[] = {"stream_grad_norm", "branch_cosine"};

TEST_F(RunSeries, GivesColumnsOfStepsInTheOrderAskedFor) {
  append("steps.csv", "4,64,0.001,inf,nan,1,1,1,2.5,0,0,1\n5,64,0.001,1");
  const StepSeries steps = read_steps(run_, loss_and_eval);
  EXPECT_THAT(steps.steps, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(steps.columns[0], ElementsAre(1.7, 1.7, 1.7, INFINITY));
  EXPECT_TRUE(std::isnan(steps.columns[1][2]));
  EXPECT_EQ(steps.columns[1][3], 2.5);
  constexpr std::string_view seconds[] = {"seconds"};
  EXPECT_THAT(read_timing(run_, seconds).columns[0], ElementsAre(0.5, 1, 1.5));
}

TEST_F(RunSeries, GivesColumnsOfLayersStepByStep) {
  const LayerSeries layers = read_layers(run_, gradient);
  EXPECT_THAT(layers.steps, ElementsAre(1, 3));
  ASSERT_EQ(layers.rows.size(), 6u);
  EXPECT_EQ(layers.rows[4].layer, 2);
  EXPECT_EQ(layers.rows[4].sublayer, "ffn");
  EXPECT_EQ(layers.value(0, 1, 4), 1);
  EXPECT_EQ(layers.value(0, 1, 2), std::exp(-1));
  EXPECT_TRUE(std::isnan(layers.value(0, 0, 5))) << "the head has no stream";
  EXPECT_TRUE(std::isnan(layers.value(1, 0, 1))) << "not measured";
}

TEST_F(RunSeries, DropsAStepWhoseRowsAreNotAllThere) {
  const std::string rest(layers_columns().size() - 3, ',');
  append("layers.csv", "4,0,embedding" + rest + "\n4,1,attention" + rest + "\n");
  const LayerSeries layers = read_layers(run_, gradient);
  EXPECT_THAT(layers.steps, ElementsAre(1, 3));
  EXPECT_EQ(layers.columns[0].size(), 12u);
  append("layers.csv", "5,0,embedding" + rest + "\n");
  EXPECT_THAT(error_of([&] { read_layers(run_, gradient); }), HasSubstr("step 4: its sub-layers are not those of"));
}

TEST_F(RunSeries, NamesFileAndLineOfWhatIsDamaged) {
  append("steps.csv", "4,64,0.001,much,1,1,1,1,,0,0,0\n");
  EXPECT_THAT(error_of([&] { read_steps(run_, loss_and_eval); }),
              HasSubstr(run_.file("steps.csv") + ":5: loss: \"much\" is not a number"));
  make(made_);
  append("steps.csv", "4,64\n");
  EXPECT_THAT(error_of([&] { read_steps(run_, loss_and_eval); }),
              HasSubstr(run_.file("steps.csv") + ":5: has 2 cells where the header has 12"));
  make(made_);
  append("steps.csv", "x,64,0.001,1,1,1,1,1,,0,0,0\n");
  EXPECT_THAT(error_of([&] { read_steps(run_, loss_and_eval); }), HasSubstr(":5: step: \"x\" is not a whole number"));
  const std::string rest(layers_columns().size() - 3, ',');
  append("layers.csv", "4,0,stem" + rest + "\n");
  EXPECT_THAT(error_of([&] { read_layers(run_, gradient); }), HasSubstr("step 4: its sub-layers"));
  remove_file(run_.file("layers.csv"));
  EXPECT_THAT(error_of([&] { read_layers(run_, gradient); }), HasSubstr("cannot be read"));
  constexpr std::string_view unknown[] = {"no_such_column"};
  EXPECT_THROW(read_steps(run_, unknown), std::logic_error);
}

TEST_F(RunSeries, GivesBackSpikes) {
  made_.spikes = {{.series = SpikeSeries::loss,
                   .kind = EpisodeKind::spike,
                   .start_step = 10,
                   .peak_step = 12,
                   .end_step = 13,
                   .level_before = 1.5,
                   .peak = 4,
                   .score = 25,
                   .recovered = true,
                   .first = SpikeRow::First{9, {3, "ffn"}, LayerQuantity::update_ratio, 8.5}},
                  {.series = SpikeSeries::grad_norm, .kind = EpisodeKind::nonfinite, .peak = NAN, .score = INFINITY}};
  make(made_);
  const std::vector<SpikeRow> rows = read_spikes(run_);
  ASSERT_EQ(rows.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    // Compared as cells, so that nan equals nan.
    const std::vector<Cell> there = cells(rows[i]), here = cells(made_.spikes[i]);
    ASSERT_EQ(there.size(), here.size());
    for (std::size_t k = 0; k < here.size(); ++k)
      if (std::holds_alternative<double>(here[k]) && std::isnan(std::get<double>(here[k])))
        EXPECT_TRUE(std::isnan(std::get<double>(there[k])));
      else
        EXPECT_EQ(there[k], here[k]) << i << ", " << spikes_columns()[k].name;
  }
  append("spikes.csv", "loss,wave,1,1,1,,1,1,0,,,,,\n");
  EXPECT_THAT(error_of([&] { read_spikes(run_); }), HasSubstr(":4: kind: \"wave\" is no word of this column"));
}

TEST_F(RunSeries, StepsASecondCountFromTheFirstRowToTheLast) {
  EXPECT_EQ(steps_per_second(run_), 2);
  made_.steps = 4000;  // longer than what is read of it
  make(made_);
  EXPECT_EQ(steps_per_second(run_), 2);
  append("timing.csv", "4001,2500");  // not a whole line
  EXPECT_EQ(steps_per_second(run_), 2);
  made_.steps = 1;
  make(made_);
  EXPECT_EQ(steps_per_second(run_), std::nullopt);
  append("timing.csv", "2,soon,1,0\n");
  EXPECT_THAT(error_of([&] { steps_per_second(run_); }), HasSubstr("timing.csv: its first or last row has no numbers"));
}

}  // namespace
}  // namespace gradflow
