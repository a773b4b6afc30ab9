#include "output/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <vector>

#include "core/error.h"
#include "core/files.h"
#include "testing/temporary_folder.h"

namespace gradflow {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class SafetensorsTest : public ::testing::Test {
 protected:
  SafetensorsTest() {
    const auto bytes = [](const auto& values) { return std::as_bytes(std::span(values)); };
    const TensorContent tensors[] = {{"block.1.weight", ElementType::float32, {2, 3}, bytes(matrix_)},
                                     {"scalar", ElementType::float64, {}, bytes(scalar_)},
                                     {"nothing", ElementType::float64, {0, 4}, {}}};
    write_safetensors(path(), {{"step", "7"}, {"state", R"({"checksum":"0123456789abcdef"})"}}, tensors);
  }
  std::string path() const { return folder_ / "a.safetensors"; }

  std::string error_of(const std::string& content) const {
    std::ofstream(folder_ / "b.safetensors", std::ios::binary) << content;  // thousands of them: none is synced
    try {
      const SafetensorsFile file(folder_ / "b.safetensors");
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), StartsWith(folder_ / "b.safetensors: is damaged ("));
      return error.what();
    }
    return "no error";
  }

  TemporaryFolder folder_;
  std::vector<float> matrix_ = {1, -2, 3.5F, 4, 1e-30F, 6};
  std::vector<double> scalar_ = {0.1};
};

TEST_F(SafetensorsTest, ReadsWhatItWrote) {
  const SafetensorsFile file(path());
  EXPECT_EQ(file.metadata().at("step"), "7");
  EXPECT_EQ(file.metadata().at("state"), R"({"checksum":"0123456789abcdef"})");
  ASSERT_EQ(file.tensors().size(), 3u);
  const TensorPlace* matrix = file.find("block.1.weight");
  ASSERT_NE(matrix, nullptr);
  EXPECT_EQ(matrix->type, ElementType::float32);
  EXPECT_THAT(matrix->shape, ElementsAre(2, 3));
  std::vector<float> values(6);
  file.read(*matrix, std::as_writable_bytes(std::span(values)));
  EXPECT_EQ(values, matrix_);
  std::vector<double> scalar(1);
  file.read(*file.find("scalar"), std::as_writable_bytes(std::span(scalar)));
  EXPECT_EQ(scalar, scalar_);
  EXPECT_EQ(file.find("bias"), nullptr);
}

TEST_F(SafetensorsTest, TensorsStartAtAMultipleOfEight) {
  const std::string content = read_file(path());
  const auto length = static_cast<unsigned char>(content[0]) + 256U * static_cast<unsigned char>(content[1]);
  EXPECT_EQ(length % 8, 0u);
  EXPECT_EQ(content.size(), 8 + length + 6 * 4 + 8);
}

TEST_F(SafetensorsTest, EveryFlippedBitShows) {
  const std::string good = read_file(path());
  for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    EXPECT_NE(error_of(bad), "no error") << "bit " << bit;
  }
}

TEST_F(SafetensorsTest, EveryMissingEndShows) {
  const std::string good = read_file(path());
  for (std::size_t size = 0; size < good.size(); ++size) EXPECT_NE(error_of(good.substr(0, size)), "no error") << size;
  EXPECT_NE(error_of(good + '\0'), "no error");
}

TEST_F(SafetensorsTest, AMissingFileIsNamed) {
  try {
    const SafetensorsFile file(folder_ / "none.safetensors");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), StartsWith(folder_ / "none.safetensors: cannot be read ("));
  }
}

TEST(SafetensorsHeader, RefusesWhatDoesNotFit) {
  const auto error = [](const std::string& json) -> std::string {
    try {
      parse_safetensors_header(json, 8);
    } catch (const Error& fault) {
      return fault.what();
    }
    return "no error";
  };
  EXPECT_EQ(error(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})"), "no error");
  EXPECT_EQ(error(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                  R"("b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})"),
            "no error");
  EXPECT_THAT(error("[]"), HasSubstr("no JSON object"));
  EXPECT_THAT(error("{"), HasSubstr("no JSON object"));
  EXPECT_THAT(error("{}"), HasSubstr("describes 0 bytes"));
  EXPECT_THAT(error(R"({"a":3})"), HasSubstr("no dtype for a"));
  EXPECT_THAT(error(R"({"a":{"dtype":"F16","shape":[4],"data_offsets":[0,8]}})"), HasSubstr("type"));
  EXPECT_THAT(error(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})"), HasSubstr("ends before"));
  EXPECT_THAT(error(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})"), HasSubstr("another size"));
  EXPECT_THAT(error(R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})"), HasSubstr("whole number"));
  EXPECT_THAT(error(R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,8]}})"),
              HasSubstr("beyond all measure"));
  EXPECT_THAT(error(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})"), HasSubstr("a gap"));
  EXPECT_THAT(error(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})"), HasSubstr("there are 8"));
  EXPECT_THAT(error(R"({"__metadata__":{"step":7},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})"),
              HasSubstr("no text"));
}

/// A reader that shares nothing with ours but the description of the layout: Python's standard library.
TEST_F(SafetensorsTest, APythonOfTheStandardLibraryReadsIt) {
  if (std::system("python3 -c '' 2>/dev/null") != 0) GTEST_SKIP() << "no python3";
  const std::string script = folder_ / "read.py";
  write_file_atomically(script, R"(import json, struct, sys
data = open(sys.argv[1], "rb").read()
size = struct.unpack("<Q", data[:8])[0]
header = json.loads(data[8:8 + size])
assert header["__metadata__"]["step"] == "7"
place = header["block.1.weight"]
assert place["dtype"] == "F32" and place["shape"] == [2, 3]
begin, end = place["data_offsets"]
values = struct.unpack("<6f", data[8 + size + begin:8 + size + end])
assert values[:4] == (1.0, -2.0, 3.5, 4.0), values
place = header["scalar"]
begin, end = place["data_offsets"]
assert struct.unpack("<d", data[8 + size + begin:8 + size + end]) == (0.1,)
assert max(t["data_offsets"][1] for n, t in header.items() if n != "__metadata__") == len(data) - 8 - size
)");
  EXPECT_EQ(std::system(("python3 " + script + " " + path()).c_str()), 0);
}

}  // namespace
}  // namespace gradflow
