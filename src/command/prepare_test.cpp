#include "command/prepare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "command/device.h"
#include "core/error.h"
#include "core/files.h"
#include "testing/temporary_folder.h"

namespace gradflow {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class Prepare : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    write_file_atomically(folder_ / name, text);
    return folder_ / name;
  }

  std::vector<std::string> faults(const std::string& text, const std::vector<std::string>& overrides = {}) {
    try {
      prepare(write("config.json", text), overrides);
    } catch (const Error& error) {
      EXPECT_EQ(error.exit(), Exit::error);
      return error.lines();
    }
    return {};
  }

  std::string place(int line) { return folder_ / "config.json:" + std::to_string(line) + ": "; }

  TemporaryFolder folder_;
};

TEST_F(Prepare, TheSmallestFileIsReady) {
  const Prepared prepared = prepare(write("config.json", "{}"));
  EXPECT_EQ(prepared.device, at::Device(at::kCPU));
  EXPECT_EQ(prepared.config.name, "config");
  EXPECT_EQ(prepared.config.data.vocabulary, prepared.source->facts().vocabulary);
}

TEST_F(Prepare, TheVocabularyOfATextByCharactersComesFromTheText) {
  write("text.txt", std::string(200, 'a') + std::string(200, 'b') + "c");
  const std::string config = write(
      "config.json", R"({"data": {"task": "text", "files": ["text.txt"], "tokenizer": "character", "context": 8}})");
  EXPECT_EQ(prepare(config).config.data.vocabulary, 3);
}

TEST_F(Prepare, ATextTooShortIsRefusedAtItsKey) {
  write("text.txt", "too short");
  EXPECT_THAT(faults("{\"data\": {\"task\": \"text\", \"files\": [\"text.txt\"],\n \"context\": 64}}"),
              ElementsAre(AllOf(StartsWith(place(2) + "data.context: "), HasSubstr("too few"))));
}

TEST_F(Prepare, AFaultOfAnOverrideNamesTheOption) {
  EXPECT_THAT(faults("{}", {"data.vocabulary=1"}), ElementsAre(StartsWith("--set data.vocabulary: ")));
}

TEST_F(Prepare, OneReportNamesConfigurationAndData) {
  EXPECT_THAT(faults("{\"model\": {\"heads\": 5},\n\"data\": {\"vocabulary\": 1}}"),
              ElementsAre(StartsWith(place(1) + "model.heads: "), StartsWith(place(2) + "data.vocabulary: ")));
}

TEST_F(Prepare, TheDefaultOfAFaultyKeyIsNotBlamed) {
  write("text.txt", "too short for the default context, long enough for 8");
  EXPECT_THAT(faults(R"({"data": {"task": "text", "files": ["text.txt"], "context": "8"}})"),
              ElementsAre(StartsWith(place(1) + "data.context: ")));
}

TEST_F(Prepare, CudaThatIsNotThereIsRefused) {
  if (cuda_device_count() > 0) GTEST_SKIP() << "a CUDA device is there";
  const std::string text = "{\"compute\":\n{\"device\": \"cuda\"},\n \"model\": {\"heads\": 5}}";
  EXPECT_THAT(faults(text),
              ElementsAre(AllOf(StartsWith(place(2) + "compute.device: "), HasSubstr("write \"cpu\", or \"auto\"")),
                          StartsWith(place(3) + "model.heads: ")));
  EXPECT_THAT(faults("{}", {"device=auto"}), IsEmpty());
}

}  // namespace
}  // namespace gradflow
