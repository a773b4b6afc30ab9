#include "data/markov.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <map>
#include <numbers>
#include <set>

#include "core/error.h"

namespace gradflow {
namespace {

DataConfig data_of(std::int64_t vocabulary = 64, std::int64_t successors = 4, std::int64_t seed = 0) {
  DataConfig data;
  data.vocabulary = vocabulary;
  data.successors = successors;
  data.seed = seed;
  return data;
}

std::vector<std::int64_t> all_successors(const MarkovTask& task) {
  std::vector<std::int64_t> all;
  for (std::int64_t symbol = 0; symbol < task.facts().vocabulary; ++symbol)
    all.insert(all.end(), task.successors(symbol).begin(), task.successors(symbol).end());
  return all;
}

TEST(MarkovTask, HasTheEntropiesOfTheCalibration) {
  const MarkovTask task{DataConfig{}};
  EXPECT_EQ(task.facts().vocabulary, 64);
  EXPECT_NEAR(*task.facts().entropy_rate, 1.75 * std::numbers::ln2, 1e-15);
  EXPECT_NEAR(*task.facts().unigram_entropy, 3.95, 0.05);
}

TEST(MarkovTask, EntropyRateFollowsTheSuccessors) {
  const auto rate = [](std::int64_t successors) { return *MarkovTask(data_of(64, successors)).facts().entropy_rate; };
  EXPECT_EQ(rate(1), 0);
  EXPECT_NEAR(rate(2), std::numbers::ln2, 1e-15);
  EXPECT_NEAR(rate(3), 1.5 * std::numbers::ln2, 1e-15);
  EXPECT_NEAR(rate(64), (2 - std::exp2(-62)) * std::numbers::ln2, 1e-14);
}

TEST(MarkovTask, SuccessorsAreDistinctAndReachEverySymbol) {
  for (const std::int64_t vocabulary : {2, 3, 17, 64}) {
    for (const std::int64_t each : {1, 2, 4, 64}) {
      if (each > vocabulary) continue;
      const MarkovTask task(data_of(vocabulary, each, 5));
      std::set<std::int64_t> ends_of_cycle;
      for (std::int64_t symbol = 0; symbol < vocabulary; ++symbol) {
        const std::set<std::int64_t> distinct(task.successors(symbol).begin(), task.successors(symbol).end());
        EXPECT_EQ(distinct.size(), static_cast<std::size_t>(each));
        EXPECT_GE(*distinct.begin(), 0);
        EXPECT_LT(*distinct.rbegin(), vocabulary);
      }
      std::int64_t symbol = 0;
      for (std::int64_t i = 0; i < vocabulary; ++i) {
        ends_of_cycle.insert(symbol);
        symbol = task.successors(symbol).back();
      }
      EXPECT_EQ(symbol, 0);
      EXPECT_EQ(ends_of_cycle.size(), static_cast<std::size_t>(vocabulary));
    }
  }
}

TEST(MarkovTask, StationaryDistributionStaysUnderTheChain) {
  for (const auto& [vocabulary, each] : {std::pair{64, 4}, {64, 1}, {200, 2}, {5, 5}}) {
    const MarkovTask task(data_of(vocabulary, each, 3));
    std::vector<double> next(static_cast<std::size_t>(vocabulary));
    double total = 0;
    for (std::int64_t symbol = 0; symbol < vocabulary; ++symbol) {
      const double probability = task.stationary()[static_cast<std::size_t>(symbol)];
      EXPECT_GT(probability, 0);
      total += probability;
      for (std::size_t rank = 0; rank < static_cast<std::size_t>(each); ++rank)
        next[static_cast<std::size_t>(task.successors(symbol)[rank])] += probability * task.probabilities()[rank];
    }
    EXPECT_NEAR(total, 1, 1e-14);
    for (std::size_t symbol = 0; symbol < next.size(); ++symbol)
      EXPECT_NEAR(next[symbol], task.stationary()[symbol], 1e-13 / vocabulary);
  }
}

TEST(MarkovTask, FrequenciesAreThoseOfTheChain) {
  const MarkovTask task(data_of(8, 4, 1));
  const std::int64_t sequences = 20000, length = 9;
  std::map<std::pair<std::int64_t, std::int64_t>, double> pairs;
  std::vector<double> first(8), last(8);
  for (std::int64_t number = 0; number < sequences; ++number) {
    const Sequence sequence = draw_sequence(task, 1, Part::training, number, length);
    ++first[static_cast<std::size_t>(sequence.inputs.front())];
    ++last[static_cast<std::size_t>(sequence.targets.back())];
    for (std::size_t t = 0; t < sequence.inputs.size(); ++t) {
      ++pairs[{sequence.inputs[t], sequence.targets[t]}];
      if (t > 0) {
        EXPECT_EQ(sequence.inputs[t], sequence.targets[t - 1]);
      }
    }
  }
  // Six standard deviations of a frequency over n draws.
  const auto error = [](double p, double n) { return 6 * std::sqrt(p * (1 - p) / n) + 1e-12; };
  for (std::int64_t symbol = 0; symbol < 8; ++symbol) {
    const double stationary = task.stationary()[static_cast<std::size_t>(symbol)];
    EXPECT_NEAR(first[static_cast<std::size_t>(symbol)] / sequences, stationary, error(stationary, sequences));
    EXPECT_NEAR(last[static_cast<std::size_t>(symbol)] / sequences, stationary, error(stationary, sequences));
    double leaving = 0;
    for (std::int64_t next = 0; next < 8; ++next) leaving += pairs[{symbol, next}];
    for (std::size_t rank = 0; rank < 4; ++rank) {
      const double wanted = task.probabilities()[rank];
      EXPECT_NEAR((pairs[{symbol, task.successors(symbol)[rank]}] / leaving), wanted, error(wanted, leaving));
    }
  }
  std::size_t seen = 0;
  for (const auto& [pair, count] : pairs) seen += count > 0;
  EXPECT_EQ(seen, 8u * 4u);  // nothing but successors
}

TEST(MarkovTask, ChainFollowsDataSeedAlone) {
  EXPECT_EQ(all_successors(MarkovTask(data_of(64, 4, 0))), all_successors(MarkovTask(data_of(64, 4, 0))));
  EXPECT_NE(all_successors(MarkovTask(data_of(64, 4, 0))), all_successors(MarkovTask(data_of(64, 4, 1))));
}

TEST(MarkovTask, RefusesMoreSuccessorsThanSymbols) {
  try {
    MarkovTask(data_of(8, 9));
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(),
                testing::StartsWith("data.successors: 9 distinct successors of 8 symbols; write at most 8"));
  }
}

TEST(MarkovTask, IsFast) {
  const MarkovTask task{DataConfig{}};
  const auto start = std::chrono::steady_clock::now();
  std::int64_t sum = 0;
  for (std::int64_t number = 0; number < 1600; ++number)
    sum += draw_sequence(task, 1, Part::training, number, 32).targets.back();
  const double a_batch = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / 100;
  RecordProperty("microseconds_a_batch_of_16_times_32", std::to_string(1e6 * a_batch));
  EXPECT_GT(sum, 0);
  EXPECT_LT(a_batch, 1e-3);
}

}  // namespace
}  // namespace gradflow
