#include "config/grid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "config/identity.h"
#include "core/error.h"
#include "core/files.h"
#include "testing/temporary_folder.h"

namespace gradflow {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using Lines = std::vector<std::string>;

class GridFile : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    write_file_atomically(folder_ / name, text);
    return folder_ / name;
  }

  Grid grid(const std::string& text, const Lines& overrides = {}) { return Grid(write("study.json", text), overrides); }

  Lines labels(const std::string& text, const Lines& overrides = {}) {
    const Grid read = grid(text, overrides);
    Lines out;
    for (std::size_t i = 0; i < read.size(); ++i) out.push_back(read.label(i));
    return out;
  }

  Lines faults(const std::string& text, const Lines& overrides = {}) {
    try {
      grid(text, overrides);
    } catch (const Error& error) {
      EXPECT_EQ(error.exit(), Exit::error);
      return error.lines();
    }
    return {};
  }

  /// The start of a fault on that line of the grid file.
  std::string place(int line) { return folder_ / "study.json:" + std::to_string(line) + ": "; }

  TemporaryFolder folder_;
};

TEST_F(GridFile, AxesAreMultipliedInTheOrderOfTheFileTheLastFastest) {
  EXPECT_THAT(labels(R"({"axes": {"seed": [1, 2], "model.placement": ["pre", "post"]}})"),
              ElementsAre("seed=1 model.placement=pre", "seed=1 model.placement=post", "seed=2 model.placement=pre",
                          "seed=2 model.placement=post"));
}

TEST_F(GridFile, EveryListOfTogetherIsOneMoreAxis) {
  EXPECT_THAT(labels(R"({"together": [[{"model.depth": 6, "train.batch": 8}, {"train.batch": 4, "model.depth": 12}],
                                      [{"seed": 3}, {"seed": 4}]],
                         "axes": {"model.bias": [true]}})"),
              ElementsAre("model.bias=true model.depth=6 train.batch=8 seed=3",
                          "model.bias=true model.depth=6 train.batch=8 seed=4",
                          "model.bias=true model.depth=12 train.batch=4 seed=3",
                          "model.bias=true model.depth=12 train.batch=4 seed=4"));
}

TEST_F(GridFile, ExcludeDropsCellsThatMatchAllItsKeysAsValues) {
  const std::string axes = R"("axes": {"model.placement": ["pre", "post"], "train.learning_rate": [1e-3, 3e-3]})";
  EXPECT_THAT(
      labels("{" + axes + R"(, "exclude": [{"model.placement": "post", "train.learning_rate": 0.003}]})"),
      ElementsAre("model.placement=pre train.learning_rate=1e-3", "model.placement=pre train.learning_rate=3e-3",
                  "model.placement=post train.learning_rate=1e-3"));
  EXPECT_THAT(labels("{" + axes + R"(, "base": {"model": {"width": 32}}, "exclude": [{"train.learning_rate": 1e-3},
                     {"model.placement": "pre", "model.ffn_width": 128}]})"),
              ElementsAre("model.placement=post train.learning_rate=3e-3"))
      << "keys of the base and those that follow from others count, too";
}

TEST_F(GridFile, AnExcludedCellMayBeImpossible) {
  const Grid read = grid(R"({"axes": {"model.norm": ["none", "layernorm"]}, "base": {"model": {"placement": "keel"}},
                             "exclude": [{"model.norm": "none"}]})");
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read.config(0).model.norm, Norm::layernorm);
}

TEST_F(GridFile, AnExclusionWithoutEffectIsAWarning) {
  const Grid read = grid("{\"axes\": {\"seed\": [1, 2]},\n\"exclude\": [{\"seed\": 2},\n{\"seed\": 3}]}");
  EXPECT_THAT(read.warnings(), ElementsAre(place(3) + "exclude: matches no cell; correct or remove it"));
  EXPECT_THAT(faults(R"({"axes": {"seed": [1]}, "exclude": [{"seed": 1}]})"),
              ElementsAre(HasSubstr("exclude: leaves no cell")));
}

TEST_F(GridFile, WithoutAxesThereIsTheBase) {
  const Grid read = grid("{}");
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read.label(0), "the base");
  EXPECT_EQ(read.config(0).name, "study");
}

TEST_F(GridFile, ABaseFileIsRelativeToTheGridItsDataFilesToItself) {
  create_folders(folder_ / "bases");
  write("bases/letters.txt", "abc");
  write("bases/base.json", R"({"model": {"depth": 3}, "data": {"task": "text", "files": ["letters.txt"]}})");
  const Grid read = grid(R"({"base": "bases/base.json", "axes": {"seed": [7]}})");
  const Config config = read.config(0);
  EXPECT_EQ(config.model.depth, 3);
  EXPECT_EQ(config.seed, 7);
  EXPECT_EQ(config.name, "study") << "the study is the grid, unless the base has a name";
  EXPECT_THAT(config.data.files, ElementsAre(folder_ / "bases/letters.txt"));
  EXPECT_EQ(read.base_file(), folder_ / "bases/base.json");

  write("digits.txt", "123");
  EXPECT_THAT(grid(R"({"base": "bases/base.json", "axes": {"data.files": [["digits.txt"]]}})").config(0).data.files,
              ElementsAre(folder_ / "digits.txt"));
  write("bases/base.json", R"({"name": "mine"})");
  EXPECT_EQ(grid(R"({"base": "bases/base.json"})").config(0).name, "mine");
}

TEST_F(GridFile, OverridesActOnEveryCell) {
  const Grid read = grid(R"({"axes": {"seed": [1, 2]}})", {"depth=5"});
  EXPECT_EQ(read.config(0).model.depth, 5);
  EXPECT_EQ(read.config(1).model.depth, 5);
  EXPECT_THAT(faults("{\n\"axes\": {\n\"model.depth\": [1, 2]}}", {"depth=5"}),
              ElementsAre("--set depth: model.depth: is an axis of the grid (" + folder_ / "study.json:3" +
                          "); leave the option out, or the axis"));
}

TEST_F(GridFile, NumbersWrittenInTwoWaysAreTheSameRun) {
  const Grid read = grid(R"({"axes": {"train.learning_rate": [1e-3, 0.001]}})");
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(run_hash(read.config(0)), run_hash(read.config(1)));
  EXPECT_EQ(run_id(read.config(0)), run_id(read.config(1)));
}

TEST_F(GridFile, EveryFaultIsNamedAtOnceWithItsLine) {
  EXPECT_THAT(
      faults(R"({
"axes": {
"model.dept": [1],
"train.warmup": [],
"model.depth": 6,
"model": [1],
"name": ["a"],
"train.learning_rate": [1e-3, "1e-4"],
"model.placement": ["pre",
"pots"]},
"together": [[{"seed": 1}, {"seeds": 2}], [{"train.learning_rate": 1}], [], 3],
"exclude": [{"model.widht": 3}, {}],
"axis": {},
"train": {"steps": 3}})"),
      ElementsAre(AllOf(StartsWith(place(3) + "model.dept: unknown key"), HasSubstr("did you mean model.depth?")),
                  StartsWith(place(4) + "train.warmup: an axis without values; write at least one"),
                  place(5) + "model.depth: must be a list of values, got 6; write [6]",
                  StartsWith(place(6) + "model: is a group of keys; write one of its keys, such as "),
                  StartsWith(place(7) + "name: cannot be an axis"),
                  StartsWith(place(8) + "train.learning_rate: must be a number"),
                  AllOf(StartsWith(place(10) + "model.placement: \"pots\" is not a choice"), HasSubstr("post")),
                  AllOf(StartsWith(place(11) + "together: an entry has the keys {\"seeds\": …}, the first of its"),
                        EndsWith("give every entry the same keys")),
                  place(11) + "train.learning_rate: is an axis already, on line 8; keep one of the two",
                  StartsWith(place(11) + "together: an axis without values"),
                  StartsWith(place(11) + "together: must hold lists, got 3"),
                  AllOf(StartsWith(place(12) + "model.widht: unknown key"), HasSubstr("model.width")),
                  StartsWith(place(12) + "exclude: an entry must be an object with keys, got an empty one"),
                  place(13) + "axis: no part of a grid; did you mean axes?",
                  StartsWith(place(14) + "train: is a key of the runs; write it inside \"base\"")));
}

TEST_F(GridFile, RepeatedKeysAreNamedOnce) {
  EXPECT_THAT(faults("{\"axes\": {\"seed\": [1],\n\"seed\": [2]}}"),
              ElementsAre(place(2) + "axes.seed: repeated, first written on line 1; keep one of the two"));
}

TEST_F(GridFile, AFaultOfTheBaseIsSaidOnce) {
  EXPECT_THAT(faults("{\"base\": {\"model\":\n{\"dept\": 3}}, \"axes\": {\"seed\": [1, 2, 3]}}"),
              ElementsAre(StartsWith(place(2) + "model.dept: unknown key")));
  EXPECT_THAT(faults(R"({"base": "absent.json", "axes": {"seed": [1, 2]}})"),
              ElementsAre(AllOf(StartsWith(place(1) + "base: " + folder_ / "absent.json" + ": cannot be read"))));
  EXPECT_THAT(faults(R"({"base": 3})"),
              ElementsAre(StartsWith(place(1) + "base: must be the name of a configuration")));
  write("base.json", "{\"model\":\n {\"depth\": \"3\"}}");
  EXPECT_THAT(faults(R"({"base": "base.json", "axes": {"seed": [1, 2]}})"),
              ElementsAre(StartsWith(folder_ / "base.json" + ":2: model.depth: must be a whole number")));
}

TEST_F(GridFile, WhatCannotBeBuiltNamesTheLineThatIsToBlame) {
  const Grid read = grid("{\"axes\": {\n\"model.heads\": [4,\n5]}}");
  EXPECT_NO_THROW(read.config(0));
  try {
    read.config(1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.lines(), ElementsAre(StartsWith(place(3) + "model.heads: 5 does not divide model.width")));
  }
}

TEST_F(GridFile, HugeProductsAreRefused) {
  std::string axes;
  for (const char* key : {"seed", "data.seed", "train.steps", "train.batch", "model.depth", "model.ffn_width"}) {
    axes += (axes.empty() ? "\"" : ", \"") + std::string(key) + "\": [1";
    for (int i = 2; i <= 10; ++i) axes += ", " + std::to_string(i);
    axes += "]";
  }
  EXPECT_THAT(faults("{\"axes\": {" + axes + "}}"), ElementsAre(HasSubstr("has more than 100000 cells")));
}

TEST_F(GridFile, WhatIsNoGridIsSaid) {
  EXPECT_THAT(faults("[]"), ElementsAre(StartsWith(place(1) + "must be an object, got a list")));
  EXPECT_THAT(faults(R"({"axes": [], "together": {}, "exclude": 1})"),
              ElementsAre(HasSubstr("axes: must be an object"), HasSubstr("together: must be a list of lists"),
                          HasSubstr("exclude: must be a list of objects")));
}

}  // namespace
}  // namespace gradflow
