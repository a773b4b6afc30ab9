#include "analysis/recorded_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <string>

#include "config/identity.h"
#include "core/files.h"
#include "core/lock.h"
#include "testing/made_run.h"
#include "testing/temporary_folder.h"

namespace gradflow {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::MadeRun;
using testing::make_run;
using ::testing::Not;
using ::testing::StartsWith;
using testing::transformer_config;

class ReadRun : public ::testing::Test {
 protected:
  std::string path() const { return folder_ / "run"; }
  std::string file(const std::string& name) const { return path() + '/' + name; }

  RecordedRun read() const {
    auto result = read_run(path());
    if (const auto* left_out = std::get_if<LeftOut>(&result)) throw std::runtime_error(left_out->reason);
    return std::move(std::get<RecordedRun>(result));
  }

  /// Why the run is left out; "used" when it is not.
  std::string reason() const {
    const auto result = read_run(path());
    const auto* left_out = std::get_if<LeftOut>(&result);
    if (left_out == nullptr) return "used";
    EXPECT_EQ(left_out->path, path());
    return left_out->reason;
  }

  void replace(const std::string& name, const std::string& from, const std::string& to) const {
    std::string text = read_file(file(name));
    const std::size_t place = text.find(from);
    ASSERT_NE(place, std::string::npos) << from;
    write_file_atomically(file(name), text.replace(place, from.size(), to));
  }

  TemporaryFolder folder_;
  MadeRun made_{.config = transformer_config(12, Placement::post, 3)};
};

TEST_F(ReadRun, GivesBackWhatTheRunWrote) {
  made_.loss = 3.93;
  make_run(path(), made_);
  const RecordedRun run = read();
  EXPECT_EQ(run.path, path());
  EXPECT_EQ(run.config, resolved(made_.config));
  EXPECT_EQ(run.status, RunStatus::finished);
  EXPECT_TRUE(run.finished());
  EXPECT_EQ(run.verdict(), Verdict::stuck);
  EXPECT_EQ(run.final_loss(), 3.93);
  EXPECT_EQ(run.unigram_entropy(), 3.9);
  EXPECT_EQ(run.entropy_rate(), 1.2);
  EXPECT_EQ(run.number("/spikes/loss"), 0);
  EXPECT_EQ(run.number("/spikes/loss/deeper"), std::nullopt);
  EXPECT_EQ(run.number("/verdict"), std::nullopt);
  EXPECT_EQ(run.number("/no/such/key"), std::nullopt);
  EXPECT_EQ(run.derived.at("parameters"), 1234);
  EXPECT_EQ(run.id(), run_id(made_.config));
  EXPECT_EQ(run.file("steps.csv"), file("steps.csv"));
}

TEST_F(ReadRun, EveryStatusIsKept) {
  for (const RunStatus status :
       {RunStatus::running, RunStatus::finished, RunStatus::diverged, RunStatus::interrupted, RunStatus::failed}) {
    made_.status = status;
    made_.reason = "because";
    std::filesystem::remove_all(path());
    make_run(path(), made_);
    const FileLock held(file("lock"));
    const RecordedRun run = read();
    EXPECT_EQ(run.status, status);
    EXPECT_EQ(run.reason, "because");
    EXPECT_EQ(run.finished(), status == RunStatus::finished || status == RunStatus::diverged);
    EXPECT_EQ(run.verdict().has_value(), run.finished());
  }
}

TEST_F(ReadRun, ARunThatNobodyWorksOnIsNotRunning) {
  made_.status = RunStatus::running;
  make_run(path(), made_);
  EXPECT_EQ(read().status, RunStatus::killed);
  EXPECT_FALSE(read().finished());
}

TEST_F(ReadRun, ARunThatHasJustBegunNeedsNoTables) {
  made_.status = RunStatus::running;
  make_run(path(), made_);
  for (const char* name : {"steps.csv", "layers.csv", "spikes.csv", "timing.csv"}) remove_file(file(name));
  EXPECT_EQ(reason(), "used");
}

TEST_F(ReadRun, DataFilesNeedNotBeThereAnyMore) {
  made_.config.data.task = Task::text;
  made_.config.data.files = {"/nowhere/any/more.txt"};
  made_.files_hash = "0123456789abcdef";
  make_run(path(), made_);
  const RecordedRun run = read();
  EXPECT_EQ(run.config.data.files, made_.config.data.files);
  EXPECT_EQ(run.files_hash(), "0123456789abcdef");
}

TEST_F(ReadRun, HalfWrittenFoldersAreLeftOut) {
  make_run(path(), made_);
  for (const char* name :
       {"config.json", "manifest.json", "summary.json", "steps.csv", "layers.csv", "spikes.csv", "timing.csv"}) {
    const std::string content = read_file(file(name));
    remove_file(file(name));
    EXPECT_THAT(reason(), HasSubstr(std::string("has no ") + name)) << name;
    write_file_atomically(file(name), "");
    EXPECT_THAT(reason(), AllOf(HasSubstr(name), Not(HasSubstr("has no " + std::string(name))))) << "empty";
    write_file_atomically(file(name), content);
  }
  EXPECT_EQ(reason(), "used");
}

TEST_F(ReadRun, DamagedFilesAreLeftOut) {
  make_run(path(), made_);
  for (const char* name : {"config.json", "manifest.json", "summary.json"}) {
    const std::string content = read_file(file(name));
    for (const std::string& damage : {content.substr(0, content.size() / 2), std::string("[]"), std::string("null"),
                                      std::string("\xff\xfe"), std::string(1000, '[')}) {
      write_file_atomically(file(name), damage);
      EXPECT_THAT(reason(), HasSubstr("damaged")) << name << ": " << damage;
    }
    write_file_atomically(file(name), content);
  }
  replace("manifest.json", "\"finished\"", "\"perhaps\"");
  EXPECT_THAT(reason(), StartsWith("manifest.json is damaged: its status is \"perhaps\""));
  make_run(path(), made_);
  replace("config.json", "\"seed\": 3", "\"seed\": \"three\"");
  EXPECT_THAT(reason(), HasSubstr("config.json:3: seed: "));
}

TEST_F(ReadRun, AWrongKindOfNumberInTheSummaryIsAbsent) {
  make_run(path(), made_);
  write_file_atomically(file("summary.json"), R"({"final_loss": "1.7", "verdict": 3, "spikes": [1, 2]})");
  const RecordedRun run = read();
  EXPECT_EQ(run.final_loss(), std::nullopt);
  EXPECT_EQ(run.verdict(), std::nullopt);
  EXPECT_EQ(run.number("/spikes/loss"), std::nullopt);
}

TEST_F(ReadRun, RunsOfAnotherVersionAreLeftOut) {
  made_.version = "99.1.0";
  make_run(path(), made_);
  EXPECT_THAT(reason(), HasSubstr("was written by version 99.1.0, this is " + std::string(build_info().version)));

  made_.version = std::string(build_info().version) + "1";  // another last number: the same files
  make_run(path(), made_);
  EXPECT_EQ(reason(), "used");

  replace("config.json", "\"depth\"", "\"height\"");
  EXPECT_THAT(reason(), StartsWith("is damaged or of another version: config.json:"));
  make_run(path(), made_);
  replace("config.json", "    \"depth\": 12,\n", "");
  EXPECT_THAT(reason(), HasSubstr("model.depth: is missing"));

  for (const char* name : {"steps.csv", "layers.csv", "spikes.csv", "timing.csv"}) {
    make_run(path(), made_);
    std::string content = read_file(file(name));
    write_file_atomically(file(name), content.insert(content.find('\n'), ",more"));
    EXPECT_THAT(reason(), HasSubstr(std::string(name) + ": column ")) << name;
    EXPECT_THAT(reason(), HasSubstr("is more where this version has nothing")) << name;
  }
}

TEST_F(ReadRun, WhatIsNoFileIsLeftOut) {
  make_run(path(), made_);
  remove_file(file("summary.json"));
  create_folders(file("summary.json"));
  EXPECT_THAT(reason(), StartsWith("summary.json: cannot be read"));
}

}  // namespace
}  // namespace gradflow
