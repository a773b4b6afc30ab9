#include "data/source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/error.h"

namespace gradflow {
namespace {

Config config_of(Task task) {
  Config config;
  config.data.task = task;
  config.data.context = 9;
  config.train.batch = 4;
  return config;
}

bool same(const Batch& one, const Batch& other) {
  return at::equal(one.inputs, other.inputs) && at::equal(one.targets, other.targets);
}

constexpr Task drawn_tasks[] = {Task::markov,   Task::copy,    Task::reverse, Task::sort,
                                Task::majority, Task::modular, Task::random};

TEST(DataSource, BatchesHaveTheirShapeAndCount) {
  for (const Task task : drawn_tasks) {
    const Batch batch = make_source(config_of(task))->training_batch(1, 0);
    EXPECT_EQ(batch.inputs.sizes(), (at::IntArrayRef{4, 9}));
    EXPECT_EQ(batch.targets.sizes(), (at::IntArrayRef{4, 9}));
    EXPECT_EQ(batch.inputs.scalar_type(), at::kLong);
    EXPECT_EQ(batch.targets.scalar_type(), at::kLong);
    EXPECT_FALSE(batch.real.defined());
    EXPECT_EQ(batch.tokens, 36);
    EXPECT_GE(batch.inputs.min().item<std::int64_t>(), 0);
    EXPECT_LT(batch.inputs.max().item<std::int64_t>(), 64);
    EXPECT_LT(batch.targets.max().item<std::int64_t>(), 64);
  }
}

TEST(DataSource, BatchIsAFunctionOfItsNumber) {
  for (const Task task : drawn_tasks) {
    SCOPED_TRACE(name_of(task));
    const auto source = make_source(config_of(task));
    const Batch third = source->training_batch(3, 0);
    EXPECT_FALSE(same(source->training_batch(4, 0), third));
    EXPECT_TRUE(same(source->training_batch(3, 0), third));
    EXPECT_TRUE(same(make_source(config_of(task))->training_batch(3, 0), third));
    EXPECT_TRUE(same(source->validation_batch(2), source->validation_batch(2)));
  }
}

TEST(DataSource, AccumulationChangesOnlyHowSequencesAreGrouped) {
  for (const Task task : drawn_tasks) {
    Config whole = config_of(task);
    whole.train.batch = 8;
    Config split = config_of(task);
    split.train.batch = 2;
    split.train.accumulation = 4;
    for (const std::int64_t step : {1, 5}) {
      const Batch wanted = make_source(whole)->training_batch(step, 0);
      const auto source = make_source(split);
      std::vector<at::Tensor> inputs, targets;
      for (std::int64_t micro = 0; micro < 4; ++micro) {
        const Batch part = source->training_batch(step, micro);
        inputs.push_back(part.inputs);
        targets.push_back(part.targets);
      }
      EXPECT_TRUE(at::equal(at::cat(inputs), wanted.inputs));
      EXPECT_TRUE(at::equal(at::cat(targets), wanted.targets));
    }
  }
}

TEST(DataSource, TrainingAndValidationAreDifferentStreams) {
  for (const Task task : drawn_tasks) {
    const auto source = make_source(config_of(task));
    EXPECT_FALSE(same(source->training_batch(1, 0), source->validation_batch(0)));
  }
}

TEST(DataSource, SequencesFollowTheSeedAndTheTaskFollowsDataSeed) {
  const Config config = config_of(Task::markov);
  Config other_seed = config;
  other_seed.seed = 2;
  Config other_chain = config;
  other_chain.data.seed = 2;
  const auto source = make_source(config), seed = make_source(other_seed), chain = make_source(other_chain);
  EXPECT_FALSE(same(source->training_batch(1, 0), seed->training_batch(1, 0)));
  EXPECT_EQ(source->facts().unigram_entropy, seed->facts().unigram_entropy);  // the same chain
  EXPECT_NE(source->facts().unigram_entropy, chain->facts().unigram_entropy);

  Config random = config_of(Task::random);
  Config random_other = random;
  random_other.data.seed = 2;  // there is nothing that it could decide
  EXPECT_TRUE(same(make_source(random)->training_batch(1, 0), make_source(random_other)->training_batch(1, 0)));
}

TEST(DataSource, ModelAndTrainingKeysChangeNoSequence) {
  for (const Task task : drawn_tasks) {
    const Config config = config_of(task);
    Config other = config;
    other.model.depth = 3;
    other.model.placement = Placement::post;
    other.train.learning_rate = 1;
    other.train.steps = 7;
    other.train.evaluate_every = 2;
    EXPECT_TRUE(same(make_source(config)->training_batch(2, 0), make_source(other)->training_batch(2, 0)));
  }
}

TEST(DataSource, TailIsPaddingThatIsNotAsked) {
  for (const Task task : {Task::markov, Task::copy, Task::reverse, Task::sort, Task::majority, Task::modular,
                          Task::random, Task::quadratic}) {
    SCOPED_TRACE(name_of(task));
    Config config = config_of(task);
    config.data.context = 10;
    config.data.padding_fraction = 0.35;  // ⌊3.5⌋
    const Batch batch = make_source(config)->training_batch(1, 0);
    EXPECT_EQ(batch.tokens, 4 * 7);
    ASSERT_TRUE(batch.real.defined());
    EXPECT_EQ(batch.real.scalar_type(), at::kBool);
    EXPECT_TRUE(batch.real.slice(1, 0, 7).all().item<bool>());
    EXPECT_FALSE(batch.real.slice(1, 7, 10).any().item<bool>());
    EXPECT_TRUE((batch.targets.slice(1, 7, 10) == -100).all().item<bool>());
    EXPECT_TRUE((batch.inputs.slice(1, 7, 10) == 0).all().item<bool>());
    if (task == Task::quadratic) continue;  // its rows count the padding

    Config shorter = config;  // the rest is the sequence of a shorter context
    shorter.data.context = 7;
    shorter.data.padding_fraction = 0;
    const Batch wanted = make_source(shorter)->training_batch(1, 0);
    EXPECT_TRUE(at::equal(batch.inputs.slice(1, 0, 7), wanted.inputs));
    EXPECT_TRUE(at::equal(batch.targets.slice(1, 0, 7), wanted.targets));
  }
}

TEST(DataSource, QuadraticCountsMicroBatches) {
  Config config = config_of(Task::quadratic);
  config.data.vocabulary = 11;
  config.data.context = 6;
  config.train.batch = 3;
  config.train.accumulation = 3;
  const auto source = make_source(config);
  for (std::int64_t step = 1; step <= 4; ++step) {
    for (std::int64_t micro = 0; micro < 3; ++micro) {
      const Batch batch = source->training_batch(step, micro);
      const at::Tensor i = at::arange(18, at::kLong) + ((step - 1) * 3 + micro) * 17;
      EXPECT_TRUE(at::equal(batch.inputs.flatten(), (i * 7 + i * i * 3 + 1) % 11));
      EXPECT_TRUE(at::equal(batch.targets.flatten(), (i * 5 + i * i + 2) % 11));
    }
  }
}

TEST(DataSource, TextGivesBatchesOfBothParts) {
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "gradflow-source-test.txt";
  std::ofstream(path, std::ios::binary) << std::string(900, 'a') + std::string(100, 'b');
  Config config = config_of(Task::text);
  config.data.files = {path};
  config.train.evaluate_every = 10;
  const auto source = make_source(config);
  EXPECT_EQ(source->facts().text_tokens, 1000);
  EXPECT_TRUE((source->training_batch(1, 0).inputs == 'a').all().item<bool>());
  EXPECT_TRUE((source->validation_batch(0).targets == 'b').all().item<bool>());
  std::filesystem::remove(path);
}

std::string error_of(const Config& config) {
  try {
    make_source(config);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(DataSource, RefusesSequencesOfPaddingAlone) {
  Config config = config_of(Task::markov);
  config.data.padding_fraction = 1;
  EXPECT_THAT(error_of(config), testing::StartsWith("data.context: 9 tokens of which 9 are padding leave 0"));
  config.data.padding_fraction = 0.99;
  EXPECT_EQ(error_of(config), "no error");
}

}  // namespace
}  // namespace gradflow
