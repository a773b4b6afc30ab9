// The tasks on vectors and images: what a sample is made of, and what is known about the task.

#include <gtest/gtest.h>

#include <cmath>

#include "data/entropy.h"
#include "data/image_tasks.h"
#include "data/source.h"
#include "data/vector_tasks.h"

namespace gradflow {
namespace {

Config config_of(Task task) {
  Config config;
  config.model.stack = task == Task::cifar10 ? StackKind::resnet : StackKind::mlp;
  config.data.task = task;
  config.train.batch = 8;
  return config;
}

bool same(const Batch& one, const Batch& other) {
  return at::equal(one.inputs, other.inputs) && at::equal(one.targets, other.targets);
}

constexpr Task all_tasks[] = {Task::teacher, Task::clusters, Task::identity, Task::cifar10};

TEST(SampleSource, BatchesHaveTheirShapesAndCount) {
  for (const Task task : all_tasks) {
    SCOPED_TRACE(name_of(task));
    Config config = config_of(task);
    const Batch batch = make_source(config)->training_batch(1, 0);
    EXPECT_EQ(batch.inputs.sizes(), task == Task::cifar10 ? (at::IntArrayRef{8, 3, 16, 16}) : (at::IntArrayRef{8, 32}));
    EXPECT_EQ(batch.inputs.scalar_type(), at::kFloat);
    EXPECT_EQ(batch.tokens, 8);
    EXPECT_FALSE(batch.real.defined());
    if (task == Task::identity) {
      EXPECT_TRUE(at::equal(batch.targets, batch.inputs));
    } else {
      EXPECT_EQ(batch.targets.sizes(), (at::IntArrayRef{8}));
      EXPECT_EQ(batch.targets.scalar_type(), at::kLong);
    }
    config.compute.dtype = Dtype::float64;
    const at::Tensor exact = make_source(config)->training_batch(1, 0).inputs;
    EXPECT_EQ(exact.scalar_type(), at::kDouble);
    EXPECT_TRUE(at::equal(exact.to(at::kFloat), batch.inputs));
  }
}

TEST(SampleSource, EightTimesOneIsFourTimesTwo) {
  for (const Task task : all_tasks) {
    SCOPED_TRACE(name_of(task));
    Config halves = config_of(task);
    halves.train.batch = 4;
    halves.train.accumulation = 2;
    const auto whole = make_source(config_of(task)), half = make_source(halves);
    for (const std::int64_t step : {1, 2}) {
      const Batch one = whole->training_batch(step, 0);
      const Batch first = half->training_batch(step, 0), second = half->training_batch(step, 1);
      EXPECT_TRUE(at::equal(one.inputs, at::cat({first.inputs, second.inputs})));
      EXPECT_TRUE(at::equal(one.targets, at::cat({first.targets, second.targets})));
    }
  }
}

TEST(SampleSource, BatchesDependOnTheirNumberAndTheSeedsAlone) {
  for (const Task task : all_tasks) {
    SCOPED_TRACE(name_of(task));
    Config other_draws = config_of(task);
    other_draws.seed = 2;
    const auto one = make_source(config_of(task)), again = make_source(config_of(task)),
               other = make_source(other_draws);
    const Batch third = one->training_batch(3, 0);
    EXPECT_TRUE(same(third, again->training_batch(3, 0)));
    EXPECT_FALSE(same(third, one->training_batch(4, 0)));
    EXPECT_FALSE(same(third, other->training_batch(3, 0)));
    EXPECT_TRUE(same(one->validation_batch(1), again->validation_batch(1)));
    EXPECT_FALSE(same(one->validation_batch(0), one->training_batch(1, 0)));
  }
}

TEST(SampleSource, TheTaskFollowsDataSeedAlone) {
  Config first = config_of(Task::teacher), second = first;
  second.seed = 2;
  EXPECT_EQ(make_source(first)->facts().unigram_entropy, make_source(second)->facts().unigram_entropy);
  second.data.seed = 7;
  EXPECT_NE(make_source(first)->facts().unigram_entropy, make_source(second)->facts().unigram_entropy);

  // The same draws, another task: teacher and clusters give other samples, the vectors of identity stay.
  for (const Task task : {Task::teacher, Task::clusters, Task::cifar10}) {
    Config one = config_of(task), other = one;
    one.train.batch = other.train.batch = 64;
    other.data.seed = 7;
    EXPECT_FALSE(same(make_source(one)->training_batch(1, 0), make_source(other)->training_batch(1, 0)));
  }
  Config other = config_of(Task::identity);
  other.data.seed = 7;
  EXPECT_TRUE(
      same(make_source(config_of(Task::identity))->training_batch(1, 0), make_source(other)->training_batch(1, 0)));
}

/// Mean and variance over samples of every feature, averaged over features, within sampling error.
TEST(SampleSource, FeaturesAreNormalised) {
  for (const Task task : all_tasks) {
    SCOPED_TRACE(name_of(task));
    Config config = config_of(task);
    config.train.batch = 2000;
    config.data.classes = 200;  // many centres, so that their own mean and variance are near 0 and 1
    const at::Tensor x = make_source(config)->training_batch(1, 0).inputs.to(at::kDouble);
    EXPECT_NEAR(x.mean().item<double>(), 0, 0.04);
    EXPECT_NEAR(x.square().mean().item<double>(), 1, 0.05);
  }
}

TEST(Teacher, LabelsAreItsOwnAndTheirEntropyIsEstimated) {
  Config config = config_of(Task::teacher);
  config.train.batch = 4000;
  config.compute.dtype = Dtype::float64;
  const auto source = make_source(config);
  const Batch batch = source->training_batch(1, 0);
  const TeacherTask teacher(config.data);
  std::vector<double> counts(10);
  for (std::int64_t b = 0; b < 4000; ++b) {
    const auto label = batch.targets[b].item<std::int64_t>();
    ++counts.at(static_cast<std::size_t>(label));
    EXPECT_EQ(teacher.label({batch.inputs.data_ptr<double>() + b * 32, 32}), label);
  }
  EXPECT_NEAR(entropy(counts), source->facts().unigram_entropy.value(), 0.04);
  EXPECT_LT(source->facts().unigram_entropy.value(), std::log(10.0));
  EXPECT_EQ(source->facts().vocabulary, 10);
}

TEST(Clusters, SamplesLieAroundTheirCentres) {
  Config config = config_of(Task::clusters);
  config.train.batch = 4000;
  config.data.classes = 4;
  const auto source = make_source(config);
  EXPECT_DOUBLE_EQ(source->facts().unigram_entropy.value(), std::log(4.0));
  const Batch training = source->training_batch(1, 0), validation = source->validation_batch(0);
  for (std::int64_t c = 0; c < 4; ++c) {
    const at::Tensor own = training.inputs.index({training.targets == c}),
                     other = validation.inputs.index({validation.targets == c});
    EXPECT_NEAR(static_cast<double>(own.size(0)), 1000, 120);
    // Half the variance is the noise; the centres are those of the other part too.
    EXPECT_NEAR((own - own.mean(0)).square().mean().item<double>(), 0.5, 0.03);
    EXPECT_LT((own.mean(0) - other.mean(0)).abs().max().item<double>(), 0.15);
  }
}

TEST(Identity, TheBestConstantAnswerCostsOne) {
  Config config = config_of(Task::identity);
  config.train.batch = 4000;
  const auto source = make_source(config);
  EXPECT_NEAR(source->training_batch(1, 0).targets.square().mean().item<double>(),
              source->facts().unigram_entropy.value(), 0.02);
  EXPECT_EQ(source->facts().vocabulary, 0);
}

/// Share of `seen` whose class is that of the nearest class mean of `known`; features [samples, …].
double nearest_mean_accuracy(const at::Tensor& known, const at::Tensor& known_classes, const at::Tensor& seen,
                             const at::Tensor& seen_classes, std::int64_t classes) {
  std::vector<at::Tensor> distances;
  for (std::int64_t c = 0; c < classes; ++c) {
    const at::Tensor mean = known.index({known_classes == c}).mean(0);
    distances.push_back((seen - mean).square().flatten(1).sum(1));
  }
  return (at::stack(distances).argmin(0) == seen_classes).to(at::kDouble).mean().item<double>();
}

/// Random phases leave no class a mean image of its own; its spectrum tells nearly all.
TEST(Textures, ClassesDifferInTheirSpectra) {
  Config config = config_of(Task::cifar10);
  config.train.batch = 1000;
  const auto source = make_source(config);
  EXPECT_DOUBLE_EQ(source->facts().unigram_entropy.value(), std::log(10.0));
  const Batch known = source->training_batch(1, 0), seen = source->validation_batch(0);
  // The mean of n images without a common part has the variance 1/n.
  double times_count = 0;
  for (std::int64_t c = 0; c < 10; ++c) {
    const at::Tensor own = known.inputs.index({known.targets == c});
    times_count += own.mean(0).square().mean().item<double>() * static_cast<double>(own.size(0)) / 10;
  }
  EXPECT_NEAR(times_count, 1, 0.5);
  const auto spectrum = [](const at::Tensor& x) { return at::fft_fft2(x).abs(); };
  EXPECT_GT(nearest_mean_accuracy(spectrum(known.inputs), known.targets, spectrum(seen.inputs), seen.targets, 10), 0.9);
}

}  // namespace
}  // namespace gradflow
