#include "config/load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "config/resolved.h"
#include "core/error.h"
#include "testing/temporary_folder.h"

namespace gradflow {
namespace {

using Lines = std::vector<std::string>;

Lines faults(std::string_view text, std::vector<std::string> overrides = {}) {
  try {
    parse_config(text, "a.json", overrides);
  } catch (const Error& error) {
    EXPECT_EQ(error.exit(), Exit::error);
    return error.lines();
  }
  return {};
}

/// A folder for files that a test writes.
class Folder {
 public:
  std::string write(const std::string& name, const std::string& content) const {
    std::filesystem::create_directories((path() / name).parent_path());
    std::ofstream(path() / name) << content;
    return (path() / name).string();
  }
  std::filesystem::path path() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
};

TEST(Load, TheSmallestFileIsEveryDefault) {
  Config expected;
  expected.name = "a";
  EXPECT_EQ(parse_config("{}", "a.json"), resolved(expected));
}

TEST(Load, ReadsEveryGroup) {
  const Config config = parse_config(
      R"({"name": "study", "seed": 7, "model": {"placement": "deepnorm", "depth": 24}, "data": {"context": 1e2},
          "train": {"betas": [0.5, 0.75], "clip_norm": 1}, "record": {"quantities": "none", "spikes": {"rearm": 3}},
          "checkpoint": {"keep": 5}, "compute": {"dtype": "float64"}})",
      "a.json");
  EXPECT_EQ(config.name, "study");
  EXPECT_EQ(config.seed, 7);
  EXPECT_EQ(config.model.placement, Placement::deepnorm);
  EXPECT_EQ(config.model.depth, 24);
  EXPECT_EQ(config.data.context, 100);
  EXPECT_EQ(config.train.betas, (std::vector<double>{0.5, 0.75}));
  EXPECT_EQ(config.train.clip_norm, 1);
  EXPECT_EQ(config.record.quantities, std::vector<std::string>{"none"});
  EXPECT_EQ(config.record.spikes.rearm, 3);
  EXPECT_EQ(config.checkpoint.keep, 5);
  EXPECT_EQ(config.compute.dtype, Dtype::float64);
}

TEST(Load, CommentsAndAByteOrderMarkAreAccepted) {
  EXPECT_EQ(parse_config("\xEF\xBB\xBF// note\n{/* more */ \"seed\": 3}", "a.json").seed, 3);
}

TEST(Load, ATextMayStandInThePlaceOfTheFile) {
  const Config config = load_config(R"({"model": {"depth": 3}})");
  EXPECT_EQ(config.model.depth, 3);
  EXPECT_EQ(config.name, "unnamed");
  EXPECT_THROW(load_config("{"), Error);
}

TEST(Load, DerivedIsIgnoredAtTheTopOnly) {
  EXPECT_EQ(faults(R"({"derived": {"alpha": [1, {"x": null}]}})"), Lines{});
  EXPECT_EQ(faults(R"({"model": {"derived": 1}})").size(), 1u);
}

TEST(Load, UnknownKeysAreNamedWithTheNearest) {
  EXPECT_EQ(faults("{\"train\": {\n\"warm_up\": 100}}"),
            Lines{"a.json:2: train.warm_up: unknown key; did you mean train.warmup?"});
  EXPECT_EQ(faults("{\"depth\": 3}"),
            Lines{"a.json:1: depth: unknown key; did you mean model.depth, written \"model\": {\"depth\": …}?"});
  EXPECT_EQ(faults("{\"model.depth\": 3}"),
            Lines{"a.json:1: model.depth: unknown key; did you mean model.depth, written \"model\": {\"depth\": …}?"});
  EXPECT_EQ(faults("{\"modle\": {\"depht\": 3}}"), Lines{"a.json:1: modle: unknown key; did you mean model?"});
  EXPECT_EQ(faults("{\"lr\": 3}"), Lines{"a.json:1: lr: unknown key; did you mean train.learning_rate, written "
                                         "\"train\": {\"learning_rate\": …}?"});
  EXPECT_EQ(faults("{\"a\\nb\": 3}").size(), 1u);
  EXPECT_EQ(faults("{\"a\\nb\": 3}")[0].find('\n'), std::string::npos) << "one fault, one line";
}

TEST(Load, GroupsMustBeObjects) {
  EXPECT_EQ(faults("{\"model\": 3}"),
            Lines{"a.json:1: model: must be an object with keys, got 3; write \"model\": {…}"});
  EXPECT_EQ(faults("{\"record\": {\"spikes\": null}}"),
            Lines{"a.json:1: record.spikes: must be an object with keys, got null; write \"spikes\": {…}"});
  EXPECT_EQ(faults("[]"), Lines{"a.json:1: must be an object, got a list; write {} for a run with every default"});
}

TEST(Load, AllFaultsOfAFileStandInOneReportInTheOrderOfTheFile) {
  const Lines lines = faults(R"({
  "model": {"heads": 5, "depth": 0},
  "train": {
    "learning_rate": "1e-3",
    "warmup": 0.1,
    "steps": 1e999,
    "warmup": 3
  },
  "speed": 1
})",
                             {"dtype=float16"});
  EXPECT_EQ(
      lines,
      (Lines{"a.json:2: model.depth: 0 is out of range; write a whole number of blocks, 1 to 1000000",
             "a.json:2: model.heads: 5 does not divide model.width 64; write a divisor: 1, 2, 4, 8, 16, 32, 64",
             "a.json:4: train.learning_rate: must be a number, got a string (\"1e-3\"); write 1e-3 without quotes",
             "a.json:5: train.warmup: 0.1 is not a whole number of optimizer steps; write a whole number of "
             "optimizer steps, at least 0",
             "a.json:6: train.steps: 1e999 is not finite; write a whole number of optimizer steps, at least 1",
             "a.json:7: train.warmup: repeated, first written on line 5; keep one of the two",
             "a.json:9: speed: unknown key; did you mean seed?",
             "--set dtype: compute.dtype: \"float16\" is not a choice (the nearest is bfloat16); write one of "
             "float32, float64, bfloat16 (the same on cpu and cuda)"}));
}

TEST(Load, ReportsEndSomewhere) {
  std::string text = "{";
  for (int i = 0; i < 20'000; ++i) text += "\"key" + std::to_string(i) + "\": 1,\n";
  const Lines lines = faults(text + "\"seed\": 1}");
  EXPECT_EQ(lines.size(), 101u);
  EXPECT_EQ(lines.back(), "there may be more; correct these first");
}

TEST(Load, TextThatIsNotJsonIsOneLine) {
  EXPECT_EQ(faults("{\"seed\": 1,}"),
            Lines{"a.json:1: trailing comma (column 11); remove it (comments are accepted, trailing commas are not)"});
}

TEST(Load, NullIsNullOnlyWhereItIsAValue) {
  EXPECT_EQ(faults(R"({"train": {"clip_norm": null}, "model": {"residual_gate": null}})"), Lines{});
  EXPECT_EQ(faults(R"({"train": {"learning_rate": null}})"),
            Lines{"a.json:1: train.learning_rate: must be a number, got null; write a number, at least 0"});
  EXPECT_EQ(faults(R"({"model": {"ffn_width": null}})").size(), 1u);
}

TEST(Load, TheNameIsTheFilesStem) {
  EXPECT_EQ(parse_config("{}", "some/folder/pre-24.json").name, "pre-24");
  EXPECT_EQ(parse_config("{\"name\": \"x\"}", "some/folder/pre-24.json").name, "x");
  EXPECT_EQ(parse_config("{}", "").name, "unnamed");
}

TEST(Load, NumbersThatFollowAreFilledIn) {
  const Config text = parse_config(R"({"model": {"width": 32, "residual": "rezero", "placement": "none"}})", "a.json");
  EXPECT_EQ(text.model.ffn_width, 128);
  EXPECT_EQ(text.model.residual_gate, 0);
  EXPECT_EQ(text.data.vocabulary, 64);
  EXPECT_EQ(text.model.deepnorm_alpha, std::nullopt) << "\"auto\" stays";
}

TEST(Load, FilesAreRelativeToTheConfiguration) {
  const Folder folder;
  folder.write("texts/a.txt", "abc");
  const std::string config =
      folder.write("configs/run.json", R"({"data": {"task": "text", "files": ["../texts/a.txt"]}})");
  const Config loaded = load_config(config);
  EXPECT_EQ(loaded.data.files, std::vector<std::string>{(folder.path() / "texts/a.txt").string()});
  EXPECT_EQ(loaded.data.vocabulary, 256);
  EXPECT_EQ(loaded.name, "run");
  const Config characters = load_config(config, std::vector<std::string>{"tokenizer=character"});
  EXPECT_EQ(characters.data.vocabulary, std::nullopt) << "only the text tells";
}

TEST(Load, MissingFilesAreRefused) {
  const Folder folder;
  const std::string config =
      folder.write("run.json", "{\"data\": {\"task\": \"text\",\n\"files\": [\"b.txt\", \".\"]}}");
  try {
    load_config(config);
    FAIL();
  } catch (const Error& error) {
    ASSERT_EQ(error.lines().size(), 2u);
    EXPECT_EQ(error.lines()[0], config + ":2: data.files: \"b.txt\" does not exist, looked for at " +
                                    (folder.path() / "b.txt").string() +
                                    "; write a path relative to the configuration file, or an absolute one");
    EXPECT_NE(error.lines()[1].find("is a folder"), std::string::npos);
  }
}

TEST(Load, AMissingConfigurationIsNamed) {
  try {
    load_config("no/such/file.json");
    FAIL();
  } catch (const Error& error) {
    EXPECT_TRUE(error.lines()[0].starts_with("no/such/file.json: ")) << error.lines()[0];
  }
}

TEST(Validate, ChecksConfigurationsThatAProgramMade) {
  EXPECT_NO_THROW(validate(Config{}));
  Config config;
  config.model.heads = 3;
  config.train.learning_rate = -1;
  config.train.epsilon = std::nan("");
  try {
    validate(config);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.lines(),
              (Lines{"train.learning_rate: -1 is out of range; write a number, at least 0",
                     "train.epsilon: must be a number, got null; write a number, greater than 0",
                     "model.heads: 3 does not divide model.width 64; write a divisor: 1, 2, 4, 8, 16, 32, 64"}));
  }
}

TEST(Configs, EveryFileOfTheFolderIsValid) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator("configs")) {
    if (entry.path().extension() != ".json") continue;
    EXPECT_NO_THROW(load_config(entry.path().string())) << entry.path();
    ++files;
  }
  EXPECT_GE(files, 9);
}

TEST(Configs, QuickstartIsWhatTheReadmePromises) {
  const Config config = load_config("configs/quickstart.json");
  EXPECT_EQ(config.model.depth, 12);
  EXPECT_EQ(config.model.placement, Placement::pre);
  EXPECT_EQ(config.model.norm, Norm::layernorm);
  EXPECT_EQ(config.model.width, 32);
  EXPECT_EQ(config.model.heads, 4);
  EXPECT_EQ(config.model.activation, Activation::relu);
  EXPECT_EQ(config.data.context, 32);
  EXPECT_EQ(config.data.task, Task::markov);
  EXPECT_EQ(config.train.batch, 16);
  EXPECT_EQ(config.train.optimizer, OptimizerKind::adam);
  EXPECT_EQ(config.train.learning_rate, 1e-3);
  EXPECT_EQ(config.train.steps, 200);
}

TEST(LoadConfig, WhatARunHasWrittenReadsBackAsItIs) {
  Config config;
  config.name = "study";
  config.model.width = 24;
  config.data.task = Task::text;
  config.data.files = {"/moved/away.txt"};
  config.compute.device = "cuda:7";
  Json json = to_json(config);
  json["derived"] = {{"anything", 1}};
  EXPECT_EQ(parse_recorded_config(json.dump(2), "config.json"), resolved(config));

  json["model"].erase("depth");
  json["model"]["height"] = 12;
  try {
    parse_recorded_config(json.dump(2), "config.json");
    FAIL();
  } catch (const Error& error) {
    ASSERT_EQ(error.lines().size(), 2u);
    EXPECT_THAT(error.lines()[0], ::testing::HasSubstr("model.depth: is missing"));
    EXPECT_THAT(error.lines()[1], ::testing::HasSubstr("model.height: unknown key"));
  }
}

}  // namespace
}  // namespace gradflow
