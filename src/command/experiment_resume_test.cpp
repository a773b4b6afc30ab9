// One run, in this process, that goes on where another ended: it equals one that never was interrupted.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "command/experiment.h"
#include "testing/experiment.h"

namespace gradflow::testing {
namespace {

using namespace ::testing;
namespace fs = std::filesystem;

/// A run that is interrupted twice equals one that never was, whatever is trained.
class ResumeTest : public ExperimentTest, public WithParamInterface<Words> {};

TEST_P(ResumeTest, EqualsTheUninterruptedRunBitForBit) {
  const Words& overrides = GetParam();
  run("whole", overrides);
  EXPECT_EQ(run_until(6, "parts", overrides).exit, Exit::interrupted);
  EXPECT_EQ(run_until(17, "parts", overrides, true).exit, Exit::interrupted);
  EXPECT_EQ(run("parts", overrides, {.resume = true}).exit, Exit::done);
  expect_same("parts", "whole", 24);
}

INSTANTIATE_TEST_SUITE_P(
    Transformer, ResumeTest,
    Values(Words{}, Words{"optimizer=sgd", "momentum=0.9"}, Words{"optimizer=adam", "weight_decay=0.1"},
           Words{"accumulation=3", "padding_fraction=0.25"},
           Words{"norm=batchnorm", "placement=post", "accumulation=2"}, Words{"dtype=float64"}, Words{"dtype=bfloat16"},
           Words{"recompute=true", "depth=3"}, Words{"branch_warmup=20", "warmup=10", "decay=cosine"},
           Words{"tie_embeddings=true", "clip_norm=0.5"}, Words{"placement=resi_dual"},
           Words{"residual=layerscale", "initialization=fixup", "norm=none", "placement=none"},
           Words{"steps_every=4", "layers_every=100"}, Words{"quantities=none"}, Words{"on_nonfinite=skip"}));

INSTANTIATE_TEST_SUITE_P(Tasks, ResumeTest,
                         Values(Words{"task=copy"}, Words{"task=reverse"}, Words{"task=sort"}, Words{"task=majority"},
                                Words{"task=modular"}, Words{"task=random"}, Words{"task=quadratic"},
                                Words{"task=text", "data.files=README.md", "data.vocabulary=256"},
                                Words{"task=text", "data.files=README.md", "tokenizer=character",
                                      "data.vocabulary=null"}));

INSTANTIATE_TEST_SUITE_P(Feedforward, ResumeTest,
                         Values(Words{"stack=mlp", "task=teacher", "dropout=0"},
                                Words{"stack=mlp", "task=clusters", "norm=batchnorm", "dropout=0"},
                                Words{"stack=mlp", "task=identity", "dropout=0"},
                                Words{"stack=resnet", "task=cifar10", "depth=3", "norm=batchnorm", "dropout=0",
                                      "side=8"}));

/// Loss spikes at steps 18 and 22 by a learning rate far too high: an episode is open at the cuts.
TEST_F(ExperimentTest, SpikesInProgressGoOn) {
  const Words overrides = {"steps=60",
                           "learning_rate=0.3",
                           "record.spikes.min_count=4",
                           "record.spikes.window=8",
                           "record.spikes.level_window=3",
                           "record.spikes.min_jump_loss=0.01",
                           "record.spikes.threshold=2",
                           "record.spikes.min_jump_grad_norm=0.05"};
  run("whole", overrides);
  const std::string spikes = read_file(path("whole") + "/spikes.csv");
  ASSERT_GT(std::count(spikes.begin(), spikes.end(), '\n'), 3) << "no spikes to go on with";
  std::size_t open = 0;
  for (const std::int64_t cut : {11, 17, 23, 31, 44}) {
    const std::string name = "cut" + std::to_string(cut);
    run_until(cut, name, overrides);
    // The row of an open episode is not there yet.
    std::istringstream rows(spikes);
    for (std::string row; std::getline(rows, row);) {
      std::vector<std::string> cells;
      std::istringstream line(row);
      for (std::string cell; std::getline(line, cell, ',');) cells.push_back(cell);
      if (cells.size() > 4 && cells[2] != "start_step" && std::stoll(cells[2]) <= cut && std::stoll(cells[4]) >= cut)
        ++open;
    }
    run(name, overrides, {.resume = true});
    expect_same(name, "whole", 60);
  }
  EXPECT_GT(open, 0u) << "no cut within an episode";
}

TEST_F(ExperimentTest, WeightsAloneWouldNotDo) {
  // What a resumed run would be if the moments were not restored.
  run("whole", {});
  run_until(12, "parts", {});
  const std::string file = path("parts") + "/checkpoint/step-12.safetensors";
  {
    const SafetensorsFile there(file);
    std::vector<std::string> bytes;
    std::vector<TensorContent> contents;
    for (const TensorPlace& place : there.tensors()) {
      bytes.emplace_back(place.end - place.begin, '\0');
      if (place.name.find("_moment.") == std::string::npos)
        there.read(place, std::as_writable_bytes(std::span(bytes.back())));
    }
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const TensorPlace& place = there.tensors()[i];
      contents.push_back({place.name, place.type, place.shape, std::as_bytes(std::span(bytes[i]))});
    }
    Metadata metadata = there.metadata();
    metadata.erase("checksum");
    write_safetensors(file, metadata, contents);
  }
  run("parts", {}, {.resume = true});
  EXPECT_NE(tables("parts"), tables("whole"));
}

TEST_F(ExperimentTest, InOtherSurroundingsOneLineSaysThatBitsAreNotPromised) {
  run_until(8, "run", {});
  run_until(12, "run", {}, true);
  EXPECT_THAT(said_, Not(HasSubstr("last digits"))) << "nothing has changed";
  nlohmann::json manifest = json("run", "manifest.json");
  manifest["libtorch"] = "1.0.0";
  manifest["cpu"] = "another";
  write_file_atomically(path("run") + "/manifest.json", manifest.dump());
  EXPECT_EQ(run("run", {"threads=2"}, {.resume = true}).exit, Exit::done);
  EXPECT_THAT(said_, ContainsRegex("warning: compute.threads 1 → 2, libtorch 1.0.0 → [^\n]*, cpu another → "
                                   "[^\n]*: from here on the last digits may differ from those of a run"));
  manifest = json("run", "manifest.json");
  EXPECT_FALSE(manifest["resumed"][0].contains("changed"));
  EXPECT_EQ(manifest["resumed"][1]["changed"].size(), 2u);
}

TEST_F(ExperimentTest, TornLinesAndRowsBehindTheCheckpointAreCutOff) {
  run("whole", {});
  run_until(12, "parts", {});
  for (const char* file : {"steps.csv", "layers.csv", "tensors.csv", "spikes.csv", "timing.csv"})
    std::ofstream(path("parts") + '/' + file, std::ios::app) << "13,9,whatever\n14,torn";
  run("parts", {}, {.resume = true});
  expect_same("parts", "whole", 24);
}

TEST_F(ExperimentTest, ADamagedCheckpointGivesWayToTheOneBefore) {
  run("whole", {});
  run_until(17, "cut", {"checkpoint.every=5"});
  ASSERT_THAT(checkpoints("cut"), ElementsAre("step-15.safetensors", "step-17.safetensors"));
  const auto spoil = [&](const std::string& name, const std::string& checkpoint, bool truncate) {
    const std::string file = path(name) + "/checkpoint/" + checkpoint;
    std::string bytes = read_file(file);
    if (truncate)
      bytes.resize(bytes.size() / 2);
    else
      bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 4);
    write_file_atomically(file, bytes);
  };
  for (const bool truncate : {false, true}) {
    const std::string name = truncate ? "truncated" : "flipped";
    fs::copy(path("cut"), path(name), fs::copy_options::recursive);
    spoil(name, "step-17.safetensors", truncate);
    run(name, {"checkpoint.every=5"}, {.resume = true});
    EXPECT_THAT(said_, AllOf(HasSubstr("warning: " + path(name) + "/checkpoint/step-17.safetensors: is damaged ("),
                             HasSubstr("going on from the checkpoint before, of step 15")));
    expect_same(name, "whole", 24);
  }
  // With none left it begins again.
  spoil("cut", "step-15.safetensors", true);
  spoil("cut", "step-17.safetensors", false);
  run("cut", {"checkpoint.every=5"}, {.resume = true});
  EXPECT_THAT(said_, HasSubstr("starting again from step 1"));
  expect_same("cut", "whole", 24);
}

TEST_F(ExperimentTest, ATableThatHasLostRowsMakesItsCheckpointUseless) {
  run("whole", {});
  run_until(17, "cut", {"checkpoint.every=5"});
  fs::resize_file(path("cut") + "/layers.csv", fs::file_size(path("cut") + "/layers.csv") - 1);
  run("cut", {"checkpoint.every=5"}, {.resume = true});
  EXPECT_THAT(said_, HasSubstr("layers.csv has "));
  expect_same("cut", "whole", 24);
}

TEST_F(ExperimentTest, OtherColumnsAreNeverMixed) {
  run_until(12, "run", {});
  std::string steps = read_file(path("run") + "/steps.csv");
  steps.replace(0, 4, "stop");
  write_file_atomically(path("run") + "/steps.csv", steps);
  const std::string manifest = read_file(path("run") + "/manifest.json");
  EXPECT_THAT(error_of("run", {}, {.resume = true}), HasSubstr("steps.csv:1: has other columns than this version"));
  EXPECT_EQ(read_file(path("run") + "/steps.csv"), steps);
  EXPECT_EQ(read_file(path("run") + "/manifest.json"), manifest);
  EXPECT_THAT(checkpoints("run"), ElementsAre("step-12.safetensors"));
}

TEST_F(ExperimentTest, MoreStepsGoOnFromTheEndAndEqualALongRun) {
  // 24 is due for nothing, 25 for a layer row, 28 for an evaluation: the last step writes rows that it would not have
  // written, or would have written otherwise, in the middle of a run.
  for (const std::string steps : {"24", "25", "28"})
    for (const std::string every : {"1", "4"}) {
      const Words settings = {"record.steps_every=" + every, "learning_rate=0.05"};
      Words shorter = settings, longer = settings;
      shorter.push_back("train.steps=" + steps);
      longer.push_back("train.steps=40");
      const std::string name = "run" + steps + every, whole = "whole" + steps + every;
      EXPECT_EQ(run(name, shorter).exit, Exit::done);
      EXPECT_THAT(error_of(name, longer), HasSubstr("train.steps " + steps + " → 40; go on with --resume"));
      EXPECT_EQ(run(name, longer, {.resume = true}).exit, Exit::done);
      run(whole, longer);
      expect_same(name, whole, 40);
      EXPECT_EQ(json(name, "config.json")["train"]["steps"], 40);
      EXPECT_EQ(json(name, "manifest.json")["resumed"][0]["step"], std::stoi(steps));
      EXPECT_TRUE(run(name, longer).was_finished);
    }
}

TEST_F(ExperimentTest, AnotherConfigurationIsNotResumed) {
  run_until(12, "run", {});
  const std::string error = error_of("run", {"depth=3", "train.batch=8"}, {.resume = true});
  EXPECT_THAT(error, AllOf(HasSubstr("model.depth 2 → 3, train.batch 4 → 8; --resume may change only"),
                           HasSubstr(path("run") + ": ")));
  EXPECT_EQ(error_of("run", {"threads=2"}, {.resume = true}), "no error");
  EXPECT_THAT(said_, HasSubstr("warning: compute.threads 1 → 2"));
}

TEST_F(ExperimentTest, TimesOfAResumedRunAddUp) {
  run_until(12, "run", {});
  const std::string before = json("run", "manifest.json")["started"];
  std::istringstream rows(read_file(path("run") + "/timing.csv"));
  double seconds = 0;
  for (std::string row; std::getline(rows, row);)
    if (row.starts_with("12,")) seconds = std::stod(row.substr(3));
  ASSERT_GT(seconds, 0);
  run("run", {}, {.resume = true});
  std::istringstream all(read_file(path("run") + "/timing.csv"));
  double last = 0;
  std::size_t count = 0;
  for (std::string row; std::getline(all, row);) {
    if (row.starts_with("step")) continue;
    const double time = std::stod(row.substr(row.find(',') + 1));
    EXPECT_GT(time, last) << row;
    last = time;
    ++count;
  }
  EXPECT_EQ(count, 24u);
  EXPECT_GT(last, seconds);
  const auto manifest = json("run", "manifest.json");
  EXPECT_EQ(manifest["started"], before);
  ASSERT_EQ(manifest["resumed"].size(), 1u);
  EXPECT_EQ(manifest["resumed"][0]["step"], 12);
  EXPECT_EQ(manifest["status"], "finished");
}

TEST_F(ExperimentTest, KilledBetweenItsLastCheckpointAndItsEndItIsOnlyClosed) {
  run("whole", {"learning_rate=0.1"});
  run("run", {"learning_rate=0.1"});
  nlohmann::json manifest = json("run", "manifest.json");
  manifest["status"] = "running";
  write_file_atomically(path("run") + "/manifest.json", manifest.dump());
  remove_file(path("run") + "/summary.json");
  EXPECT_EQ(run("run", {"learning_rate=0.1"}, {.resume = true}).exit, Exit::done);
  expect_same("run", "whole", 24);
}

TEST_F(ExperimentTest, AFinishedRunWhoseResultsAreDamagedIsMadeWhole) {
  run("whole", {"learning_rate=0.1"});
  run("run", {"learning_rate=0.1"});
  for (const std::string name : {"summary.json", "steps.csv", "layers.csv", "spikes.csv", "timing.csv"})
    for (const bool is_there : {true, false}) {
      SCOPED_TRACE(name);
      remove_file(path("run") + '/' + name);
      if (is_there) write_file_atomically(path("run") + '/' + name, "{\"cut");
      EXPECT_THAT(error_of("run", {"learning_rate=0.1"}), HasSubstr(name + " is missing or damaged"));
      const ExperimentResult result = run("run", {"learning_rate=0.1"}, {.resume = true});
      EXPECT_EQ(result.exit, Exit::done);
      EXPECT_FALSE(result.was_finished);
      EXPECT_THAT(said_, HasSubstr("run/" + name + ": missing or damaged; the finished run is made whole"));
      // Weights, moments and tables are all there: a summary costs no step.
      if (name == "summary.json") {
        EXPECT_THAT(said_, HasSubstr("going on after step 24"));
      }
      expect_same("run", "whole", 24);
    }
  EXPECT_TRUE(run("run", {"learning_rate=0.1"}).was_finished);
}

TEST_F(ExperimentTest, ResumingAnEmptyFolderOrOneWithoutCheckpointsStartsAtStepOne) {
  run("whole", {});
  create_folders(path("empty"));
  run("empty", {}, {.resume = true});
  expect_same("empty", "whole", 24);
  run_until(8, "cut", {});
  fs::remove_all(path("cut") + "/checkpoint");
  run("cut", {}, {.resume = true});
  expect_same("cut", "whole", 24);
}

}  // namespace
}  // namespace gradflow::testing
