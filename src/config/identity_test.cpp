#include "config/identity.h"

#include <gtest/gtest.h>

#include <regex>

#include "config/fields.h"
#include "config/load.h"
#include "config/resolved.h"

namespace gradflow {
namespace {

std::string id(std::vector<std::string> overrides) { return run_id(parse_config("{}", "a.json", overrides)); }

std::string readable(const std::string& id) { return id.substr(0, id.rfind('-')); }
std::string hash(const std::string& id) { return id.substr(id.rfind('-') + 1); }

TEST(RunId, ShowsWhatDiffersThatWhichStudiesVaryFirst) {
  EXPECT_EQ(readable(id({})), "defaults");
  EXPECT_EQ(readable(id({"learning_rate=3e-3", "placement=post", "depth=24", "seed=2"})),
            "placement=post_depth=24_learning_rate=0.003_seed=2");
  EXPECT_EQ(readable(id({"betas=[0.9,0.999]", "device=cuda:1", "clip_norm=1"})),
            "betas=0.9+0.999_clip_norm=1_device=cuda_1");
}

TEST(RunId, WhatTellsTheRunsOfAGridApartIsNotCutOff) {
  const std::string name = readable(id({"placement=deepnorm", "depth=24", "learning_rate=0.003", "warmup=100", "seed=3",
                                        "width=32", "activation=relu", "context=32", "optimizer=adam", "steps=600"}));
  EXPECT_EQ(name.size(), 100u);
  EXPECT_TRUE(name.starts_with("placement=deepnorm_depth=24_width=32_learning_rate=0.003_warmup=100_seed=3_")) << name;
}

TEST(RunId, LeadsWithKeysThatExist) {
  for (const std::string_view key : leading_keys()) EXPECT_NE(find_field(key), nullptr) << key;
}

TEST(RunId, LeavesOutWhatFollowsByItself) {
  EXPECT_EQ(readable(id({"width=32"})), "width=32") << "ffn_width follows";
  EXPECT_EQ(readable(id({"width=32", "ffn_width=128"})), "width=32");
  EXPECT_EQ(readable(id({"width=32", "ffn_width=100"})), "width=32_ffn_width=100");
  EXPECT_EQ(readable(id({"residual=rezero", "placement=none"})), "placement=none_residual=rezero");
}

TEST(RunId, IsAFolderNameOfBoundedLength) {
  std::vector<std::string> many{
      "placement=mix_ln", "norm=rmsnorm", "activation=tanh", "depth=123",          "width=132",     "heads=3",
      "context=128",      "steps=1000",   "batch=3",         "learning_rate=1e-4", "accumulation=5"};
  const std::string long_id = id(many);
  EXPECT_EQ(readable(long_id).size(), 100u);
  EXPECT_TRUE(std::regex_match(long_id, std::regex("[A-Za-z0-9.+=_-]+-[0-9a-f]{8}"))) << long_id;
  many.back() = "accumulation=6";
  EXPECT_NE(id(many), long_id) << "what is cut off still counts in the hash";
  EXPECT_EQ(readable(id(many)), readable(long_id));
}

TEST(RunId, IgnoresNameAndCheckpoints) {
  EXPECT_EQ(id({"name=other", "keep=7"}), id({}));
  EXPECT_NE(id({"threads=2"}), id({}));
}

TEST(RunId, EqualConfigurationsAreEqualHoweverTheyWereWritten) {
  EXPECT_EQ(id({"learning_rate=0.001", "depth=12"}), id({}));
  const Config config = parse_config("{}", "a.json", std::vector<std::string>{"placement=post"});
  EXPECT_EQ(run_id(parse_config(to_json(config).dump(), "b.json")), run_id(config));
}

TEST(RunId, OfFilesFollowsTheirContentWhereItIsKnown) {
  Config one;
  one.data.files = {"/home/a/texts/my text.txt"};
  Config two;
  two.data.files = {"/home/b/my text.txt"};
  EXPECT_EQ(readable(run_id(one)), "files=my_text.txt");
  EXPECT_NE(hash(run_id(one)), hash(run_id(two)));
  EXPECT_EQ(run_id(one, "abc"), run_id(two, "abc"));
  EXPECT_NE(run_id(one, "abc"), run_id(one, "abd"));
}

}  // namespace
}  // namespace gradflow
