// The binary files of CIFAR-10, written here with pixels that tell where they came from.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "core/error.h"
#include "data/entropy.h"
#include "data/image_tasks.h"
#include "data/source.h"
#include "testing/temporary_folder.h"

namespace gradflow {
namespace {

constexpr std::size_t record_bytes = 3073;

/// Record r of label r mod 10: red is 10·r everywhere, green the column, blue the row.
std::string record(int r) {
  std::string bytes(record_bytes, '\0');
  bytes[0] = static_cast<char>(r % 10);
  for (int row = 0; row < 32; ++row)
    for (int column = 0; column < 32; ++column) {
      const auto place = static_cast<std::size_t>(1 + row * 32 + column);
      bytes[place] = static_cast<char>(10 * r);
      bytes[place + 1024] = static_cast<char>(column);
      bytes[place + 2048] = static_cast<char>(row);
    }
  return bytes;
}

std::string records(int first, int last) {
  std::string bytes;
  for (int r = first; r < last; ++r) bytes += record(r);
  return bytes;
}

class Cifar : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& bytes) {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return folder_ / name;
  }
  Config config(std::vector<std::string> files) {
    Config config;
    config.model.stack = StackKind::resnet;
    config.data.task = Task::cifar10;
    config.data.files = std::move(files);
    config.data.side = 32;
    config.data.validation_fraction = 0.2;
    config.train.batch = 8;
    return config;
  }
  std::string error_of(const Config& config) {
    try {
      make_source(config);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }

  TemporaryFolder folder_;
};

/// 20 records in two files: 16 for training, in which red has mean 75 and standard deviation 10·√21.25.
TEST_F(Cifar, ReadsLabelsPlanesAndNormalises) {
  const Config c = config({write("one.bin", records(0, 12)), write("two.bin", records(12, 20))});
  const auto source = make_source(c);
  const Batch batch = source->validation_batch(0);
  ASSERT_EQ(batch.inputs.sizes(), (at::IntArrayRef{8, 3, 32, 32}));
  const double red_std = 10 * std::sqrt(21.25), step_std = std::sqrt((32.0 * 32 - 1) / 12);
  for (std::int64_t b = 0; b < 8; ++b) {
    // The last four records in their order, then again.
    const std::int64_t r = 16 + b % 4;
    EXPECT_EQ(batch.targets[b].item<std::int64_t>(), r % 10);
    const at::Tensor x = batch.inputs[b];
    EXPECT_NEAR(x[0][5][7].item<double>(), (10.0 * static_cast<double>(r) - 75) / red_std, 1e-6);
    EXPECT_NEAR(x[1][5][7].item<double>(), (7 - 15.5) / step_std, 1e-6);
    EXPECT_NEAR(x[2][5][7].item<double>(), (5 - 15.5) / step_std, 1e-6);
  }
  std::vector<double> counts(10, 1);
  for (std::size_t c10 = 0; c10 < 6; ++c10) ++counts[c10];
  EXPECT_DOUBLE_EQ(source->facts().unigram_entropy.value(), entropy(counts));
  EXPECT_EQ(source->facts().vocabulary, 10);
}

TEST_F(Cifar, EachEpochShowsEveryTrainingRecordOnceInItsOwnOrder) {
  const auto source = make_source(config({write("all.bin", records(0, 20))}));
  std::vector<std::vector<double>> epochs;
  for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
    std::vector<double> reds;
    for (std::int64_t half = 0; half < 2; ++half) {
      const Batch batch = source->training_batch(2 * epoch + half + 1, 0);
      for (std::int64_t b = 0; b < 8; ++b) reds.push_back(batch.inputs[b][0][0][0].item<double>());
    }
    EXPECT_EQ(std::set<double>(reds.begin(), reds.end()).size(), 16u);
    epochs.push_back(reds);
  }
  EXPECT_NE(epochs[0], epochs[1]);
  EXPECT_NE(epochs[1], epochs[2]);
}

TEST_F(Cifar, ASmallerSideAveragesSquares) {
  Config c = config({write("all.bin", records(0, 20))});
  c.data.side = 8;
  const Batch batch = make_source(c)->validation_batch(0);
  ASSERT_EQ(batch.inputs.sizes(), (at::IntArrayRef{8, 3, 8, 8}));
  // Columns 4k … 4k+3 have the mean 4k + 1.5; over k = 0…7 that has mean 15.5 and standard deviation 4·√5.25.
  EXPECT_NEAR(batch.inputs[0][1][2][6].item<double>(), (25.5 - 15.5) / (4 * std::sqrt(5.25)), 1e-6);
}

TEST_F(Cifar, AConstantColourIsZero) {
  std::string bytes = records(0, 10);
  for (std::size_t r = 0; r < 10; ++r) bytes.replace(r * record_bytes + 1, 1024, std::string(1024, '\7'));
  const Batch batch = make_source(config({write("flat.bin", bytes)}))->training_batch(1, 0);
  EXPECT_EQ(batch.inputs.select(1, 0).abs().max().item<double>(), 0);
}

TEST_F(Cifar, RefusesFilesOfAnotherLayout) {
  EXPECT_THAT(error_of(config({folder_ / "missing.bin"})),
              ::testing::StartsWith("data.files: " + (folder_ / "missing.bin") + ": cannot be read"));
  const std::string text = write("short.bin", records(0, 2) + "x");
  EXPECT_EQ(
      error_of(config({text})),
      "data.files: " + text +
          ": 6147 bytes are not records of 3073 bytes (a label, then 32·32 bytes each of red, green and blue); give "
          "the files of the data set's binary version, such as data_batch_1.bin");
  const std::string empty = write("empty.bin", "");
  EXPECT_THAT(error_of(config({empty})), ::testing::StartsWith("data.files: " + empty + ": 0 bytes are not records"));

  std::string bytes = records(0, 4);
  bytes[2 * record_bytes] = '\12';
  const std::string wrong = write("wrong.bin", bytes);
  EXPECT_EQ(error_of(config({wrong})),
            "data.files: " + wrong +
                ": record 3 (byte 6146) has the label 10, beyond the 10 classes of data.classes; write a larger "
                "data.classes, or give the files of the data set's binary version");
  Config more = config({wrong});
  more.data.classes = 11;
  EXPECT_EQ(error_of(more), "no error");
}

TEST_F(Cifar, NamesEveryFaultAtOnce) {
  Config c = config({folder_ / "a.bin", folder_ / "b.bin"});
  c.data.side = 12;
  const std::string faults = error_of(c);
  EXPECT_THAT(faults, ::testing::HasSubstr("data.side: 12 does not divide the 32 pixels"));
  EXPECT_THAT(faults, ::testing::HasSubstr("a.bin"));
  EXPECT_THAT(faults, ::testing::HasSubstr("b.bin"));
}

TEST_F(Cifar, RefusesPartsWithoutRecords) {
  Config c = config({write("four.bin", records(0, 4))});
  EXPECT_EQ(error_of(c), "no error");
  EXPECT_THROW(make_source(c)->validation_batch(0), Error);
  c.train.evaluate_every = 1;
  EXPECT_EQ(error_of(c),
            "data.validation_fraction: 0.2 of 4 records leaves none for validation; write a larger fraction or give "
            "more files in data.files");
}

TEST(Shuffled, IsAPermutationOfItsOwnInEachEpoch) {
  const RandomStream order(3, "data.order");
  for (const std::uint64_t count : {1u, 2u, 3u, 16u, 17u, 1000u}) {
    std::vector<std::vector<std::uint64_t>> epochs;
    for (std::uint64_t epoch = 0; epoch < 2; ++epoch) {
      std::vector<std::uint64_t> places;
      for (std::uint64_t number = 0; number < count; ++number) places.push_back(shuffled(order, epoch, number, count));
      const std::set<std::uint64_t> distinct(places.begin(), places.end());
      EXPECT_EQ(distinct.size(), count);
      EXPECT_LT(*distinct.rbegin(), count);
      epochs.push_back(places);
    }
    if (count >= 16) {
      EXPECT_NE(epochs[0], epochs[1]);
    }
  }
  // Neighbours do not stay neighbours: the mean distance of a random order is a third of the count.
  double distance = 0;
  for (std::uint64_t number = 0; number + 1 < 1000; ++number)
    distance += std::abs(static_cast<double>(shuffled(order, 0, number, 1000)) -
                         static_cast<double>(shuffled(order, 0, number + 1, 1000)));
  EXPECT_NEAR(distance / 999, 1000.0 / 3, 40);
}

}  // namespace
}  // namespace gradflow
