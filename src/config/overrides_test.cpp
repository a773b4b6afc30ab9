#include "config/overrides.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "config/load.h"
#include "core/error.h"

namespace gradflow {
namespace {

using Keys = std::vector<std::string_view>;
using Lines = std::vector<std::string>;

Config with(std::vector<std::string> overrides, std::string_view text = "{}") {
  return parse_config(text, "a.json", overrides);
}

Lines faults(std::vector<std::string> overrides, std::string_view text = "{}") {
  try {
    with(std::move(overrides), text);
  } catch (const Error& error) {
    return error.lines();
  }
  return {};
}

TEST(KeysMeant, EndingsOfWholeComponents) {
  const Keys keys{"seed", "model.norm", "model.final_norm", "data.seed", "a.b.c", "x.b.c"};
  EXPECT_EQ(keys_meant("model.norm", keys), Keys{"model.norm"});
  EXPECT_EQ(keys_meant("norm", keys), Keys{"model.norm"}) << "final_norm ends in it, but not as a component";
  EXPECT_EQ(keys_meant("seed", keys), Keys{"seed"}) << "an exact full path wins";
  EXPECT_EQ(keys_meant("b.c", keys), (Keys{"a.b.c", "x.b.c"}));
  EXPECT_EQ(keys_meant("a.b.c", keys), Keys{"a.b.c"});
  EXPECT_EQ(keys_meant("orm", keys), Keys{});
  EXPECT_EQ(keys_meant("", keys), Keys{});
  EXPECT_EQ(keys_meant(".norm", keys), Keys{});
}

TEST(Overrides, TakeFullPathsAndEndings) {
  EXPECT_EQ(with({"model.placement=post"}).model.placement, Placement::post);
  EXPECT_EQ(with({"placement=post"}).model.placement, Placement::post);
  EXPECT_EQ(with({"spikes.window=99"}).record.spikes.window, 99);
  const Config seeds = with({"seed=5", "data.seed=6"});
  EXPECT_EQ(seeds.seed, 5);
  EXPECT_EQ(seeds.data.seed, 6);
}

TEST(Overrides, WinOverTheFileAndTheLastOneWins) {
  EXPECT_EQ(with({"depth=3", "model.depth=5"}, R"({"model": {"depth": 24}})").model.depth, 5);
}

TEST(Overrides, StringsAndChoicesTakeTheTextOthersJson) {
  const Config config = with({"name=a=b", "device=cuda:1", "learning_rate=1e-4", "causal=false", "betas=[0.5,0.6]",
                              "clip_norm=null", "depth=1e1", "quantities=none"},
                             R"({"train": {"clip_norm": 1}})");
  EXPECT_EQ(config.name, "a=b");
  EXPECT_EQ(config.compute.device, "cuda:1");
  EXPECT_EQ(config.train.learning_rate, 1e-4);
  EXPECT_FALSE(config.model.causal);
  EXPECT_EQ(config.train.betas, (std::vector<double>{0.5, 0.6}));
  EXPECT_EQ(config.train.clip_norm, std::nullopt);
  EXPECT_EQ(config.model.depth, 10);
  EXPECT_EQ(config.record.quantities, std::vector<std::string>{"none"});
  EXPECT_EQ(with({R"(quantities=["none","grad_norm"])"}).record.quantities.size(), 2u);
}

TEST(Overrides, AutoNeedsNoQuotes) {
  const std::string file = R"({"model": {"final_norm": false, "deepnorm_alpha": 2}})";
  EXPECT_EQ(with({"final_norm=auto", "deepnorm_alpha=\"auto\""}, file).model.final_norm, std::nullopt);
  EXPECT_EQ(with({"deepnorm_alpha=auto"}, file).model.deepnorm_alpha, std::nullopt);
}

TEST(Overrides, FilesTakeAListOrALonePath) {
  const std::string here = std::filesystem::absolute("CMakeLists.txt").lexically_normal().string();
  EXPECT_EQ(with({"files=CMakeLists.txt"}).data.files, Lines{here});
  EXPECT_EQ(with({R"(data.files=["CMakeLists.txt","src/core/error.h"])"}).data.files.size(), 2u);
  const Config elsewhere = parse_config("{}", "configs/a.json", std::vector<std::string>{"files=CMakeLists.txt"});
  EXPECT_EQ(elsewhere.data.files, Lines{here}) << "what a shell completes is relative to the current folder";
}

TEST(Overrides, FilesAreNeverThoseBesideTheConfiguration) {
  const auto fault = [](const std::string& option) {
    try {
      parse_config("{}", "configs/a.json", std::vector<std::string>{option});
    } catch (const Error& error) {
      return error.lines().at(0);
    }
    return std::string();
  };
  EXPECT_NE(fault("files=quickstart.json").find("write a path relative to the current folder"), std::string::npos);
  EXPECT_NE(fault("files=/dev/null").find("is a device or a pipe"), std::string::npos);
}

TEST(Overrides, FaultsNameTheOption) {
  EXPECT_EQ(faults({"depth=0"}),
            Lines{"--set depth: model.depth: 0 is out of range; write a whole number of blocks, 1 to 1000000"});
  EXPECT_EQ(faults({"model.depth=0"}),
            Lines{"--set model.depth: 0 is out of range; write a whole number of blocks, 1 to 1000000"});
  EXPECT_EQ(faults({"depth=deep"}),
            Lines{"--set depth: model.depth: must be a whole number of blocks, got a string (\"deep\"); write a whole "
                  "number of blocks, 1 to 1000000"});
  EXPECT_EQ(faults({"warm_up=3"}), Lines{"--set warm_up: unknown key; did you mean train.warmup?"});
  EXPECT_EQ(faults({"model.seed=3"}), Lines{"--set model.seed: unknown key; did you mean seed or data.seed?"});
  EXPECT_EQ(faults({"model=3"}),
            Lines{"--set model: is a group of keys; write one of its keys, such as model.stack=…"});
  EXPECT_EQ(faults({"depth="}).size(), 1u);
  EXPECT_EQ(faults({"name=\xff"}).size(), 1u);
}

TEST(Overrides, CombinationsNameTheOptionThatMadeThem) {
  EXPECT_EQ(faults({"heads=3"}),
            Lines{"--set heads: model.heads: 3 does not divide model.width 64; write a divisor: 1, "
                  "2, 4, 8, 16, 32, 64"});
  EXPECT_EQ(faults({"width=66"}),
            Lines{"--set width: model.heads: 4 does not divide model.width 66; write a divisor: 1, "
                  "2, 3, 6, 11, 22, 33, 66"});
}

TEST(Overrides, DoNotHideFaultsOfTheFile) { EXPECT_EQ(faults({"depth=3"}, R"({"model": {"depth": "x"}})").size(), 1u); }

TEST(Overrides, WithoutEqualsSignAreAWrongCommandLine) {
  for (const char* text : {"depth", "=3", ""}) {
    try {
      with({text});
      FAIL() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.exit(), Exit::usage) << text;
    }
  }
}

}  // namespace
}  // namespace gradflow
