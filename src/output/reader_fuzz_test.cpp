// Files that something has damaged: readers answer with content or with an Error, whatever the bytes.

#include <gtest/gtest.h>

#include <fstream>
#include <iostream>
#include <vector>

#include "core/error.h"
#include "core/files.h"
#include "output/csv_table.h"
#include "output/manifest.h"
#include "output/safetensors.h"
#include "testing/mutations.h"
#include "testing/temporary_folder.h"
#include "testing/torture.h"

namespace gradflow {
namespace {

using testing::Dice;

TEST(ReaderFuzz, CsvFiles) {
  Dice dice(testing::torture_seed(), "csv");
  const std::string good =
      "step,loss,verdict\n1,2.5,learned\n2,nan,\n3,-inf,stuck\n4,1e-300,worse\n5,4.9e-324,\n6,9007199254740993,x\n";
  const std::size_t count = testing::rounds(5000, 200'000);
  std::size_t read = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string text = testing::mutated(good, dice);
    try {
      const CsvTable table("fuzz.csv", text);
      for (std::size_t row = 0; row < table.rows(); ++row)
        for (std::size_t column = 0; column < table.columns().size(); ++column) {
          table.text(row, column);
          try {
            table.number(row, column);
            table.integer(row, column);
          } catch (const Error& error) {
            EXPECT_NE(std::string(error.what()).find("fuzz.csv:"), std::string::npos);
          }
        }
      ++read;
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).rfind("fuzz.csv:", 0), 0u) << error.what();
    }
  }
  EXPECT_GT(read, 0u);
  EXPECT_LT(read, count);
  std::cout << "[ torture  ] CSV files: " << count << ", of which read: " << read << "\n";
}

TEST(ReaderFuzz, CheckpointHeaders) {
  Dice dice(testing::torture_seed(), "safetensors header");
  const std::string good =
      R"({"__metadata__":{"checksum":"0123456789abcdef","step":"7"},"a":{"dtype":"F32","shape":[2,3],)"
      R"("data_offsets":[0,24]},"b":{"dtype":"F64","shape":[],"data_offsets":[24,32]}})";
  const std::size_t count = testing::rounds(10'000, 500'000);
  std::size_t read = 0;
  for (std::size_t i = 0; i < count; ++i) {
    try {
      const SafetensorsHeader header = parse_safetensors_header(testing::mutated(good, dice), 32);
      std::uint64_t end = 0;
      for (const TensorPlace& tensor : header.tensors) {
        EXPECT_EQ(tensor.begin, end);
        end = tensor.end;
      }
      EXPECT_EQ(end, 32u);
      ++read;
    } catch (const Error&) {
    }
  }
  EXPECT_LT(read, count);
  std::cout << "[ torture  ] checkpoint headers: " << count << ", of which in order: " << read << "\n";
}

TEST(ReaderFuzz, CheckpointFiles) {
  const TemporaryFolder folder;
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  const TensorContent tensors[] = {{"a", ElementType::float32, {2, 3}, std::as_bytes(std::span(values))}};
  write_safetensors(folder / "good", {{"step", "7"}}, tensors);
  const std::string good = read_file(folder / "good");
  Dice dice(testing::torture_seed(), "safetensors file");
  const std::size_t count = testing::rounds(2000, 50'000);
  std::size_t same = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string bytes = testing::mutated(good, dice);
    std::ofstream(folder / "bad", std::ios::binary) << bytes;
    try {
      const SafetensorsFile file(folder / "bad");
      EXPECT_EQ(bytes, good) << "damage went unnoticed";
      ++same;
    } catch (const Damaged&) {
      EXPECT_NE(bytes, good);
    }
  }
  EXPECT_LT(same, count / 4);
  std::cout << "[ torture  ] checkpoint files: " << count << ", of which unchanged: " << same << "\n";
}

TEST(ReaderFuzz, Manifests) {
  const TemporaryFolder folder;
  Manifest manifest;
  manifest.started = "2024-01-31T13:05:09Z";
  manifest.resumed = {{3, "2024-01-31T13:05:09Z"}};
  write_manifest(folder / "manifest.json", manifest);
  const std::string good = read_file(folder / "manifest.json");
  Dice dice(testing::torture_seed(), "manifest");
  const std::size_t count = testing::rounds(1000, 50'000);
  for (std::size_t i = 0; i < count; ++i) {
    std::ofstream(folder / "manifest.json", std::ios::binary) << testing::mutated(good, dice);
    Manifest next;
    continue_history(folder / "manifest.json", next);
    status_in_manifest(folder / "manifest.json");
  }
  std::cout << "[ torture  ] manifests: " << count << "\n";
}

}  // namespace
}  // namespace gradflow
