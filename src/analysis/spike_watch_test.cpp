#include "analysis/spike_watch.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <stdexcept>

#include "analysis/spike_state.h"
#include "testing/mutations.h"
#include "testing/torture.h"

namespace gradflow {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

std::vector<SubLayerName> rows_of(std::int64_t depth) {
  std::vector<SubLayerName> rows{{0, "embedding"}};
  for (std::int64_t layer = 1; layer <= depth; ++layer) {
    rows.push_back({layer, "attention"});
    rows.push_back({layer, "ffn"});
  }
  rows.push_back({depth + 1, "head"});
  return rows;
}

/// A run whose numbers wobble a little; a test changes single ones.
struct WatchedRun {
  explicit WatchedRun(std::int64_t depth) : rows(rows_of(depth)), watch(SpikeConfig{}, rows) {}

  struct Step {
    double loss;
    double grad_norm;
    std::vector<double> layer_grad_norm;
    std::vector<double> layer_update_ratio;
  };
  using Change = std::function<void(std::int64_t step, Step& numbers)>;

  Step numbers(std::int64_t step, const Change& change) const {
    const auto wobble = [&](std::size_t series) {
      return 0.02 * std::sin(0.9 * static_cast<double>(step) + 1.3 * static_cast<double>(series));
    };
    Step result{2 + wobble(0), 0.5 * (1 + wobble(1)), {}, {}};
    for (std::size_t row = 0; row < rows.size(); ++row) {
      result.layer_grad_norm.push_back(0.1 * (1 + wobble(2 * row + 2)));
      result.layer_update_ratio.push_back(0.003 * (1 + wobble(2 * row + 3)));
    }
    change(step, result);
    return result;
  }

  void run(std::int64_t first, std::int64_t last, const Change& change) {
    for (std::int64_t step = first; step <= last; ++step) {
      const Step of_step = numbers(step, change);
      const StepSpikes spikes =
          watch.add({step, of_step.loss, of_step.grad_norm, of_step.layer_grad_norm, of_step.layer_update_ratio});
      if (spikes.loss) loss_flags.push_back(step);
      if (spikes.grad_norm) grad_norm_flags.push_back(step);
      ended.insert(ended.end(), spikes.ended.begin(), spikes.ended.end());
    }
  }

  std::vector<SubLayerName> rows;
  SpikeWatch watch;
  std::vector<std::int64_t> loss_flags;
  std::vector<std::int64_t> grad_norm_flags;
  std::vector<SpikeRow> ended;
};

std::size_t row_of(std::int64_t layer, bool ffn) { return static_cast<std::size_t>(2 * layer - 1 + (ffn ? 1 : 0)); }

TEST(SpikeWatch, NamesTheSubLayerThatMovedFirst) {
  WatchedRun run(4);
  run.run(1, 120, [](std::int64_t step, WatchedRun::Step& numbers) {
    if (step == 98) numbers.layer_grad_norm[row_of(3, true)] *= 40;
    if (step == 99) numbers.layer_update_ratio[row_of(1, false)] *= 1000;  // later, though higher
    if (step == 100) numbers.loss += 3;
  });
  EXPECT_EQ(run.loss_flags, std::vector<std::int64_t>{100});
  EXPECT_TRUE(run.grad_norm_flags.empty());
  ASSERT_EQ(run.ended.size(), 1u);
  const SpikeRow& row = run.ended[0];
  EXPECT_EQ(row.series, SpikeSeries::loss);
  EXPECT_EQ(row.start_step, 100);
  EXPECT_TRUE(row.recovered);
  EXPECT_EQ(row.peak, run.numbers(100, [](auto, WatchedRun::Step&) {}).loss + 3);
  ASSERT_TRUE(row.first);
  EXPECT_EQ(row.first->step, 98);
  EXPECT_EQ(row.first->name.layer, 3);
  EXPECT_EQ(row.first->name.sublayer, "ffn");
  EXPECT_EQ(row.first->quantity, LayerQuantity::grad_norm);
  // The whole jump of ln 40 over the floor ln 2/6 of the scale; the wobble is below it.
  EXPECT_NEAR(row.first->score, std::log(40) / (std::log(2) / 6), 0.5);
  EXPECT_EQ(run.watch.episodes(), 1);
}

TEST(SpikeWatch, NamesNoneWhenNoSubLayerMoved) {
  WatchedRun run(4);
  run.run(1, 120, [](std::int64_t step, WatchedRun::Step& numbers) {
    if (step == 100) numbers.loss += 3;
    if (step == 89 || step == 101) numbers.layer_grad_norm[3] *= 40;  // too early; after the peak
  });
  ASSERT_EQ(run.ended.size(), 1u);
  EXPECT_FALSE(run.ended[0].first);
}

TEST(SpikeWatch, FlagsCountFromTenStepsBeforeTheStart) {
  WatchedRun run(4);
  run.run(1, 120, [](std::int64_t step, WatchedRun::Step& numbers) {
    if (step == 90) numbers.layer_grad_norm[3] *= 40;
    if (step == 100) numbers.loss += 3;
  });
  ASSERT_TRUE(run.ended.at(0).first);
  EXPECT_EQ(run.ended[0].first->step, 90);
}

TEST(SpikeWatch, AmongEqualStepsTheHighestScoreThenTheFirstRow) {
  WatchedRun higher(4);
  higher.run(1, 120, [](std::int64_t step, WatchedRun::Step& numbers) {
    if (step == 100) {
      numbers.loss += 3;
      numbers.layer_grad_norm[2] *= 40;
      numbers.layer_update_ratio[5] *= 80;
    }
  });
  ASSERT_TRUE(higher.ended.at(0).first);
  EXPECT_EQ(higher.ended[0].first->name.layer, 3);
  EXPECT_EQ(higher.ended[0].first->name.sublayer, "attention");
  EXPECT_EQ(higher.ended[0].first->quantity, LayerQuantity::update_ratio);

  WatchedRun equal(4);  // infinite scores are equal
  equal.run(1, 120, [](std::int64_t step, WatchedRun::Step& numbers) {
    if (step == 100) {
      numbers.loss += 3;
      numbers.layer_grad_norm[7] = infinity;
      numbers.layer_update_ratio[6] = not_a_number;
      numbers.layer_grad_norm[6] = infinity;
    }
  });
  ASSERT_TRUE(equal.ended.at(0).first);
  EXPECT_EQ(equal.ended[0].first->name.layer, 3);
  EXPECT_EQ(equal.ended[0].first->name.sublayer, "ffn");
  EXPECT_EQ(equal.ended[0].first->quantity, LayerQuantity::grad_norm);
  EXPECT_EQ(equal.ended[0].first->score, infinity);
}

TEST(SpikeWatch, FlagsUpToALaterPeakCount) {
  WatchedRun run(4);
  run.run(1, 120, [](std::int64_t step, WatchedRun::Step& numbers) {
    if (step == 100) numbers.loss += 3;
    if (step == 103) numbers.layer_grad_norm[3] *= 40;
    if (step == 104) numbers.loss += 9;
  });
  ASSERT_EQ(run.ended.size(), 1u);
  EXPECT_EQ(run.ended[0].peak_step, 104);
  ASSERT_TRUE(run.ended[0].first);
  EXPECT_EQ(run.ended[0].first->step, 103);
}

TEST(SpikeWatch, SecondSeriesFindsFlagsOfDetectorsThatAlreadyRun) {
  WatchedRun run(4);
  run.run(1, 130, [](std::int64_t step, WatchedRun::Step& numbers) {
    if (step == 100) numbers.loss += 3;
    if (step == 102) numbers.layer_grad_norm[row_of(2, false)] *= 40;
    if (step == 104) numbers.grad_norm *= 100;
  });
  ASSERT_EQ(run.ended.size(), 2u);
  EXPECT_FALSE(run.ended[0].first);  // loss: its peak was before
  ASSERT_TRUE(run.ended[1].first);
  EXPECT_EQ(run.ended[1].series, SpikeSeries::grad_norm);
  EXPECT_EQ(run.ended[1].first->step, 102);
  EXPECT_EQ(run.watch.episodes(), 2);
}

TEST(SpikeWatch, RowsAreInRawUnits) {
  WatchedRun run(2);
  double peak = 0;
  run.run(1, 120, [&](std::int64_t step, WatchedRun::Step& numbers) {
    if (step != 100) return;
    numbers.grad_norm *= 100;
    peak = numbers.grad_norm;
  });
  ASSERT_EQ(run.ended.size(), 1u);
  EXPECT_EQ(run.grad_norm_flags, std::vector<std::int64_t>{100});
  EXPECT_EQ(run.ended[0].peak, peak);
  EXPECT_NEAR(*run.ended[0].level_before, 0.5, 0.02);
}

TEST(SpikeWatch, ZeroNormsNeitherCountNorEnter) {
  WatchedRun run(2);
  run.run(1, 200, [](std::int64_t step, WatchedRun::Step& numbers) {
    if (step % 2 == 0) numbers.grad_norm = 0;
    numbers.layer_grad_norm[1] = 0;
    if (step == 151) numbers.loss += 3;
  });
  EXPECT_TRUE(run.grad_norm_flags.empty());
  ASSERT_EQ(run.ended.size(), 1u);
  EXPECT_FALSE(run.ended[0].first);
}

TEST(SpikeWatch, StopAtANonfiniteValueYieldsTheOpenEpisode) {
  WatchedRun run(2);
  run.run(1, 50, [](std::int64_t step, WatchedRun::Step& numbers) {
    if (step != 50) return;
    numbers.loss = numbers.grad_norm = not_a_number;
    numbers.layer_grad_norm[row_of(2, true)] = not_a_number;
    numbers.layer_update_ratio.clear();  // no update was made
  });
  EXPECT_TRUE(run.ended.empty());
  const std::vector<SpikeRow> rows = run.watch.finish(50);
  ASSERT_EQ(rows.size(), 2u);
  for (const SpikeRow& row : rows) {
    EXPECT_EQ(row.kind, EpisodeKind::nonfinite);
    EXPECT_TRUE(std::isnan(row.peak));
    EXPECT_FALSE(row.recovered);
    ASSERT_TRUE(row.first);
    EXPECT_EQ(row.first->name.layer, 2);
    EXPECT_EQ(row.first->name.sublayer, "ffn");
    EXPECT_EQ(row.first->score, infinity);
  }
}

TEST(SpikeWatch, LongEpisodeKeepsItsFirstSubLayer) {
  WatchedRun run(2);
  run.run(1, 700, [](std::int64_t step, WatchedRun::Step& numbers) {
    if (step == 199) numbers.layer_grad_norm[row_of(1, false)] *= 40;
    if (step >= 200 && step < 600 && step % 3 == 0) numbers.loss += 3;  // gaps of two: one episode
    if (step == 450) numbers.layer_grad_norm[row_of(2, true)] *= 4000;
    if (step == 501) numbers.loss += 5;
  });
  ASSERT_EQ(run.ended.size(), 1u);
  EXPECT_EQ(run.ended[0].start_step, 201);
  EXPECT_EQ(run.ended[0].peak_step, 501);
  EXPECT_EQ(run.ended[0].end_step, 597);
  ASSERT_TRUE(run.ended[0].first);
  EXPECT_EQ(run.ended[0].first->step, 199);
}

TEST(SpikeWatch, NextEpisodeStartsAfresh) {
  WatchedRun run(2);
  run.run(1, 200, [](std::int64_t step, WatchedRun::Step& numbers) {
    if (step == 100 || step == 150) numbers.loss += 3;
    if (step == 100) numbers.layer_grad_norm[1] *= 40;
  });
  ASSERT_EQ(run.ended.size(), 2u);
  EXPECT_TRUE(run.ended[0].first);
  EXPECT_FALSE(run.ended[1].first);
}

TEST(SpikeWatch, RestoredGoesOnAsIfNothingHadHappened) {
  const WatchedRun::Change change = [](std::int64_t step, WatchedRun::Step& numbers) {
    if (step == 98) numbers.layer_grad_norm[3] *= 40;
    if (step == 100 || step == 104) numbers.loss += static_cast<double>(step);
    if (step == 103) numbers.grad_norm *= 50;
  };
  WatchedRun whole(3);
  whole.run(1, 130, change);
  ASSERT_EQ(whole.ended.size(), 2u);
  for (const std::int64_t cut : {50, 99, 100, 102, 104, 107}) {
    WatchedRun before(3);
    before.run(1, cut, change);
    WatchedRun after(3);
    after.watch.restore(unpacked_spikes(packed(before.watch.state()), before.rows.size()));
    after.ended = before.ended;
    after.run(cut + 1, 130, change);
    ASSERT_EQ(after.ended.size(), 2u) << cut;
    for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(cells(after.ended[i]), cells(whole.ended[i])) << cut;
    EXPECT_EQ(after.watch.episodes(), 2);
  }
}

TEST(SpikeWatch, AStateThatDoesNotFitIsRefused) {
  WatchedRun run(2);
  run.run(1, 30, [](std::int64_t step, WatchedRun::Step& numbers) {
    if (step == 29) numbers.loss = not_a_number;
  });
  const std::vector<double> good = packed(run.watch.state());
  const auto refused = [&](const std::vector<double>& numbers, std::size_t rows) {
    try {
      unpacked_spikes(numbers, rows);
    } catch (const std::range_error&) {
      return true;
    }
    return false;
  };
  EXPECT_FALSE(refused(good, run.rows.size()));
  EXPECT_TRUE(refused(good, run.rows.size() + 1));
  EXPECT_TRUE(refused({good.begin(), good.end() - 1}, run.rows.size()));
  EXPECT_TRUE(refused({}, run.rows.size()));
  std::vector<double> longer = good;
  longer.push_back(0);
  EXPECT_TRUE(refused(longer, run.rows.size()));
  for (const double wrong : {-1.0, 0.5, 1e300, infinity, not_a_number}) {
    std::vector<double> changed = good;
    changed[0] = wrong;  // the length of a list
    EXPECT_TRUE(refused(changed, run.rows.size())) << wrong;
  }
}

TEST(SpikeWatch, AnyRowOfNumbersIsAStateOrRefused) {
  WatchedRun run(2);
  run.run(1, 40, [](std::int64_t step, WatchedRun::Step& numbers) {
    if (step >= 38) numbers.loss += 3;
  });
  const std::vector<double> good = packed(run.watch.state());
  testing::Dice dice(testing::torture_seed(), "spike state");
  const double traps[] = {0, 1, 2, 3, -1, 0.5, 64, 1e300, infinity, -infinity, not_a_number, 9007199254740993.0};
  const std::size_t count = testing::rounds(2000, 100'000);
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<double> numbers = good;
    for (std::size_t accidents = 1 + dice.below(3); accidents > 0; --accidents)
      numbers[dice.below(numbers.size())] = dice.of(traps);
    if (dice.one_in(4)) numbers.resize(dice.below(numbers.size()));
    try {
      WatchedRun other(2);
      other.watch.restore(unpacked_spikes(numbers, other.rows.size()));
      other.run(41, 43, [](std::int64_t, WatchedRun::Step&) {});
      other.watch.finish(43);
    } catch (const std::range_error&) {
    }
  }
}

TEST(SpikeWatch, CellsFillTheColumnsOfSpikesCsv) {
  SpikeRow row;
  EXPECT_EQ(cells(row).size(), spikes_columns().size());
  EXPECT_EQ(cells(row).back(), Cell{});
  row.first = {98, {3, "ffn"}, LayerQuantity::update_ratio, 12.5};
  row.recovered = true;
  const std::vector<Cell> full = cells(row);
  ASSERT_EQ(full.size(), spikes_columns().size());
  const auto at = [&](std::string_view name) {
    for (std::size_t i = 0; i < full.size(); ++i)
      if (spikes_columns()[i].name == name) return full[i];
    ADD_FAILURE() << name;
    return Cell{};
  };
  EXPECT_EQ(at("recovered"), Cell{std::int64_t{1}});
  EXPECT_EQ(at("first_layer"), Cell{std::int64_t{3}});
  EXPECT_EQ(at("first_sublayer"), Cell{std::string("ffn")});
  EXPECT_EQ(at("first_quantity"), Cell{std::string("update_ratio")});
  EXPECT_EQ(at("first_score"), Cell{12.5});
}

TEST(SpikeWatch, CostsLittle) {
  WatchedRun run(100);
  const WatchedRun::Step quiet = run.numbers(1, [](auto, WatchedRun::Step&) {});
  const auto seconds_of = [&](std::int64_t first, std::int64_t last, double loss) {
    const auto start = std::chrono::steady_clock::now();
    for (std::int64_t step = first; step <= last; ++step)
      run.watch.add({step, loss, quiet.grad_norm, quiet.layer_grad_norm, quiet.layer_update_ratio});
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  const double ordinary = seconds_of(1, 200, quiet.loss) / 200;
  const double opening = seconds_of(201, 201, 100);
  RecordProperty("ordinary_microseconds", std::to_string(1e6 * ordinary));
  RecordProperty("opening_microseconds", std::to_string(1e6 * opening));
  // A step at depth 100 takes tens of milliseconds. The bounds are ten times what an unoptimized build needs.
  EXPECT_LT(ordinary, 1e-3);
  EXPECT_LT(opening, 1.0);
}

}  // namespace
}  // namespace gradflow
