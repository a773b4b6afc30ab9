#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/error.h"
#include "data/entropy.h"
#include "data/question.h"
#include "data/rearrangement.h"
#include "data/unstructured.h"

namespace gradflow {
namespace {

using Tokens = std::vector<std::int64_t>;

DataConfig data_of(Task task, std::int64_t vocabulary, std::int64_t context = 64) {
  DataConfig data;
  data.task = task;
  data.vocabulary = vocabulary;
  data.context = context;
  return data;
}

template <class Made>
void expect_error(Made make, const std::string& start) {
  try {
    make();
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::StartsWith(start));
  }
}

/// Entropy of the targets that are asked, over many sequences.
double measured_entropy(const SequenceTask& task, std::int64_t length, std::int64_t sequences) {
  std::vector<double> counts(static_cast<std::size_t>(task.facts().vocabulary));
  for (std::int64_t number = 0; number < sequences; ++number)
    for (const std::int64_t target : draw_sequence(task, 3, Part::training, number, length).targets)
      if (target != no_target) ++counts[static_cast<std::size_t>(target)];
  return entropy(counts);
}

Tokens part_of(const Tokens& tokens, std::size_t first, std::size_t count) {
  return Tokens(tokens.begin() + static_cast<std::ptrdiff_t>(first),
                tokens.begin() + static_cast<std::ptrdiff_t>(first + count));
}

class Rearrangement : public testing::TestWithParam<std::tuple<Task, std::int64_t>> {};

TEST_P(Rearrangement, AnswersAfterTheSeparator) {
  const auto [kind, length] = GetParam();
  const RearrangementTask task(data_of(kind, 10, length));
  const auto count = static_cast<std::size_t>((length - 1) / 2);
  for (std::int64_t number = 0; number < 50; ++number) {
    const auto [inputs, targets] = draw_sequence(task, 1, Part::training, number, length);
    const Tokens symbols = part_of(inputs, 0, count);
    for (const std::int64_t symbol : symbols) {
      EXPECT_GE(symbol, 0);
      EXPECT_LT(symbol, 9);
    }
    Tokens answer = symbols;
    if (kind == Task::reverse) answer = Tokens(symbols.rbegin(), symbols.rend());
    if (kind == Task::sort) std::sort(answer.begin(), answer.end());

    EXPECT_EQ(inputs[count], 9);
    EXPECT_EQ(part_of(inputs, count + 1, count), answer);
    if (length % 2 == 0) {
      EXPECT_EQ(inputs.back(), 9);
    }
    EXPECT_EQ(part_of(targets, count, count), answer);
    EXPECT_EQ(std::count(targets.begin(), targets.end(), no_target), length - static_cast<std::int64_t>(count));
  }
}

INSTANTIATE_TEST_SUITE_P(Tasks, Rearrangement,
                         testing::Combine(testing::Values(Task::copy, Task::reverse, Task::sort),
                                          testing::Values(3, 4, 32, 33)));

TEST(RearrangementTask, KnowsItsEntropies) {
  for (const Task kind : {Task::copy, Task::reverse, Task::sort}) {
    const RearrangementTask task(data_of(kind, 10));
    EXPECT_EQ(task.facts().vocabulary, 10);
    EXPECT_EQ(task.facts().entropy_rate, 0);
    EXPECT_NEAR(*task.facts().unigram_entropy, std::log(9), 1e-15);
    EXPECT_NEAR(measured_entropy(task, 21, 5000), std::log(9), 0.001);
  }
}

TEST(RearrangementTask, RefusesWhatHasNoAnswer) {
  expect_error([] { RearrangementTask(data_of(Task::copy, 2)); },
               "data.vocabulary: 2 symbols are too few for the task copy; write 3 or more");
  expect_error([] { RearrangementTask(data_of(Task::sort, 10, 2)); }, "data.context: 2 tokens");
  DataConfig padded = data_of(Task::sort, 10, 8);
  padded.padding_fraction = 0.75;
  expect_error([&] { RearrangementTask{padded}; },
               "data.context: 8 tokens of which 6 are padding leave 2, the task sort needs 3; write 9 or more");
}

TEST(MajorityTask, AsksForTheOnlyMostFrequentSymbol) {
  for (const auto& [vocabulary, length] : {std::pair{2, 64}, {64, 64}, {1000, 7}, {5, 1}, {3, 2}}) {
    const MajorityTask task(data_of(Task::majority, vocabulary, length));
    for (std::int64_t number = 0; number < 200; ++number) {
      const auto [inputs, targets] = draw_sequence(task, 1, Part::training, number, length);
      std::map<std::int64_t, std::int64_t> counts;
      for (const std::int64_t symbol : inputs) ++counts[symbol];
      EXPECT_GE(counts.begin()->first, 0);
      EXPECT_LT(counts.rbegin()->first, vocabulary);
      const std::int64_t winner = targets.back();
      for (const auto& [symbol, count] : counts) {
        if (symbol != winner) {
          EXPECT_LT(count, counts[winner]);
        }
      }
      EXPECT_EQ(std::count(targets.begin(), targets.end(), no_target), length - 1);
    }
  }
}

TEST(MajorityTask, KnowsItsEntropies) {
  const MajorityTask task(data_of(Task::majority, 8));
  EXPECT_EQ(task.facts().entropy_rate, 0);
  EXPECT_NEAR(*task.facts().unigram_entropy, std::log(8), 1e-15);
  EXPECT_NEAR(measured_entropy(task, 12, 20000), std::log(8), 0.002);
}

TEST(ModularTask, AddsModuloTheLargestPrime) {
  EXPECT_EQ(ModularTask(data_of(Task::modular, 64)).modulus(), 61);
  EXPECT_EQ(ModularTask(data_of(Task::modular, 98)).modulus(), 97);
  EXPECT_EQ(ModularTask(data_of(Task::modular, 3)).modulus(), 2);
  for (const std::int64_t length : {3, 64}) {
    const ModularTask task(data_of(Task::modular, 64, length));
    for (std::int64_t number = 0; number < 100; ++number) {
      const auto [inputs, targets] = draw_sequence(task, 1, Part::training, number, length);
      EXPECT_LT(inputs[0], 61);
      EXPECT_LT(inputs[1], 61);
      EXPECT_EQ(std::count(inputs.begin() + 2, inputs.end(), 63), length - 2);
      EXPECT_EQ(targets.back(), (inputs[0] + inputs[1]) % 61);
      EXPECT_EQ(std::count(targets.begin(), targets.end(), no_target), length - 1);
    }
  }
}

TEST(ModularTask, KnowsItsEntropies) {
  const ModularTask task(data_of(Task::modular, 12));
  EXPECT_EQ(task.facts().vocabulary, 12);
  EXPECT_EQ(task.facts().entropy_rate, 0);
  EXPECT_NEAR(*task.facts().unigram_entropy, std::log(11), 1e-15);
  EXPECT_NEAR(measured_entropy(task, 3, 20000), std::log(11), 0.002);
}

TEST(ModularTask, RefusesWhatCannotBeAsked) {
  expect_error([] { ModularTask(data_of(Task::modular, 2)); }, "data.vocabulary: 2 symbols are too few");
  expect_error([] { ModularTask(data_of(Task::modular, 64, 2)); }, "data.context: 2 tokens");
}

TEST(RandomTask, IsUniformAndPredictsTheNextToken) {
  const RandomTask task(data_of(Task::random, 16));
  EXPECT_NEAR(*task.facts().unigram_entropy, std::log(16), 1e-15);
  EXPECT_NEAR(*task.facts().entropy_rate, std::log(16), 1e-15);
  EXPECT_NEAR(measured_entropy(task, 32, 2000), std::log(16), 0.001);
  const auto [inputs, targets] = draw_sequence(task, 1, Part::training, 4, 32);
  EXPECT_EQ(part_of(inputs, 1, 31), part_of(targets, 0, 31));
}

TEST(QuadraticTask, FollowsItsFormula) {
  const std::int64_t batch = 3, context = 6, vocabulary = 11;
  const QuadraticTask task(data_of(Task::quadratic, vocabulary, context), batch);
  for (std::int64_t number = 0; number < 12; ++number) {
    const auto [inputs, targets] = draw_sequence(task, 1, Part::training, number, context);
    for (std::int64_t t = 0; t < context; ++t) {
      const std::int64_t i = number % batch * context + t + 17 * (number / batch);
      EXPECT_EQ(inputs[static_cast<std::size_t>(t)], (7 * i + 3 * i * i + 1) % vocabulary);
      EXPECT_EQ(targets[static_cast<std::size_t>(t)], (5 * i + i * i + 2) % vocabulary);
    }
  }
  // Far out, where i² needs 128 bits: a multiple of V changes nothing.
  const std::int64_t far = std::int64_t{11} * 3 * 1'000'000'000'000;
  EXPECT_EQ(draw_sequence(task, 1, Part::training, far + 4, context).targets,
            draw_sequence(task, 1, Part::training, 4, context).targets);
}

TEST(QuadraticTask, KnowsTheEntropyOfItsTargets) {
  // i mod 5 = 0…4 gives targets 2, 3, 1, 1, 3.
  const QuadraticTask task(data_of(Task::quadratic, 5, 10), 1);
  EXPECT_NEAR(*task.facts().unigram_entropy, -(0.2 * std::log(0.2) + 2 * 0.4 * std::log(0.4)), 1e-15);
  EXPECT_NEAR(measured_entropy(task, 10, 5), *task.facts().unigram_entropy, 1e-12);
}

TEST(SequenceDraw, DependsOnSeedPartAndNumberAlone) {
  const RandomTask task(data_of(Task::random, 1000));
  const auto tokens = [&](std::int64_t seed, Part part, std::int64_t number) {
    return draw_sequence(task, seed, part, number, 20).inputs;
  };
  const Tokens one = tokens(1, Part::training, 7);
  EXPECT_EQ(one, tokens(1, Part::training, 7));
  EXPECT_NE(one, tokens(2, Part::training, 7));
  EXPECT_NE(one, tokens(1, Part::validation, 7));
  EXPECT_NE(one, tokens(1, Part::training, 8));
  const Sequence longer = draw_sequence(task, 1, Part::training, 7, 50);
  EXPECT_EQ(one, part_of(longer.inputs, 0, 20));
}

}  // namespace
}  // namespace gradflow
