#include "analysis/study.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "config/resolved.h"

namespace gradflow {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using Change = std::function<void(Config&)>;

/// A finished run of the default configuration with some keys changed.
RecordedRun run(const std::string& path, std::int64_t seed, const Change& change = {},
                RunStatus status = RunStatus::finished) {
  Config config;
  config.name = "study";
  config.seed = seed;
  if (change) change(config);
  RecordedRun result;
  result.path = path;
  result.config = resolved(config);
  result.status = status;
  return result;
}

std::vector<std::string> keys_of(const Study& study) {
  std::vector<std::string> keys;
  for (const StudyKey& key : study.keys) keys.emplace_back(key.key);
  return keys;
}

/// "post 12: a b" for each group: words, then the paths of its runs.
std::vector<std::string> groups_of(const Study& study) {
  std::vector<std::string> lines;
  for (const StudyGroup& group : study.groups) {
    std::string line;
    for (const std::string& word : group.words) line += word + ' ';
    line += ':';
    for (const std::size_t place : group.runs) line += ' ' + study.runs[place].path;
    lines.push_back(line);
  }
  return lines;
}

Change with(Placement placement, std::int64_t depth) {
  return [=](Config& config) {
    config.model.placement = placement;
    config.model.depth = depth;
  };
}

TEST(Study, GroupsWhatDiffersOnlyByTheSeed) {
  const Study study = make_study({run("a", 2, with(Placement::post, 12)), run("b", 10, with(Placement::post, 12)),
                                  run("c", 1, with(Placement::post, 12)), run("d", 1, with(Placement::pre, 12)),
                                  run("e", 1, with(Placement::post, 6))});
  EXPECT_THAT(keys_of(study), UnorderedElementsAre("model.depth", "model.placement"));
  EXPECT_TRUE(study.seeds_differ);
  EXPECT_THAT(groups_of(study), ElementsAre("6 post : e", "12 pre : d", "12 post : c a b"))
      << "numbers by size, words as the schema lists them, runs by seed";
  EXPECT_THAT(study.repeated, IsEmpty());
}

TEST(Study, OfOneRunNothingDiffers) {
  const Study study = make_study({run("a", 7)});
  EXPECT_THAT(study.keys, IsEmpty());
  EXPECT_FALSE(study.seeds_differ);
  EXPECT_THAT(groups_of(study), ElementsAre(": a"));
  EXPECT_THAT(make_study({}).groups, IsEmpty());
}

TEST(Study, LabelsCheckpointsAndThreadsMakeNoDifference) {
  const Study study = make_study({run("a", 1), run("b", 2, [](Config& config) {
                                    config.name = "other";
                                    config.checkpoint.every = 10;
                                    config.compute.threads = 4;
                                  })});
  EXPECT_THAT(study.keys, IsEmpty());
  EXPECT_THAT(groups_of(study), ElementsAre(": a b"));
}

TEST(Study, AKeyThatFollowsFromAnotherIsNoColumn) {
  const auto with_width = [](std::int64_t width, std::optional<std::int64_t> ffn = {}) {
    return [=](Config& config) {
      config.model.width = width;
      config.model.ffn_width = ffn;
    };
  };
  EXPECT_THAT(keys_of(make_study({run("a", 1, with_width(32)), run("b", 1, with_width(64))})),
              ElementsAre("model.width"));
  EXPECT_THAT(keys_of(make_study({run("a", 1, with_width(32)), run("b", 1, with_width(64, 32))})),
              ElementsAre("model.width", "model.ffn_width"));
}

TEST(Study, DataFilesDifferByTheirContent) {
  const auto text = [](const std::string& path, const std::string& files, const std::string& hash) {
    RecordedRun result = run(path, path == "b" ? 2 : 1, [&](Config& config) {
      config.data.task = Task::text;
      config.data.files = {files};
    });
    result.derived = {{"data_files_hash", hash}};
    return result;
  };
  EXPECT_THAT(make_study({text("a", "/here/x.txt", "0123456789"), text("b", "/there/x.txt", "0123456789")}).keys,
              IsEmpty());
  EXPECT_THAT(groups_of(make_study({text("a", "/here/x.txt", "0123456789"), text("b", "/here/y.txt", "ab23456789")})),
              ElementsAre("x.txt : a", "y.txt : b"));
  EXPECT_THAT(groups_of(make_study({text("a", "/x.txt", "0123456789"), text("b", "/x.txt", "ab23456789")})),
              ElementsAre("x.txt (01234567) : a", "x.txt (ab234567) : b"));
}

TEST(Study, TheSameRunTwiceCountsOnce) {
  const Study study = make_study({run("a", 1, {}, RunStatus::failed), run("b", 1), run("c", 2), run("d", 1)});
  EXPECT_THAT(groups_of(study), ElementsAre(": b c")) << "the finished one is kept";
  ASSERT_EQ(study.repeated.size(), 2u);
  EXPECT_EQ(study.repeated[0].path, "a");
  EXPECT_EQ(study.repeated[0].reason, "its configuration and seed are those of b");
  EXPECT_EQ(study.repeated[1].path, "d");
}

TEST(Study, LabelsAreTheShortestThatTellKeysApart) {
  const Study study = make_study({run("a", 1, [](Config& config) { config.data.seed = 1; }),
                                  run("b", 1, [](Config& config) { config.train.learning_rate = 0.1; })});
  ASSERT_EQ(study.keys.size(), 2u);
  EXPECT_EQ(study.keys[0].label, "data.seed") << "not to be taken for the seed";
  EXPECT_EQ(study.keys[1].label, "learning_rate");
  EXPECT_THAT(groups_of(study), ElementsAre("0 0.1 : b", "1 0.001 : a"));
}

TEST(Study, NamesRunsThatAreNotFinished) {
  const Study study =
      make_study({run("a", 1, {}, RunStatus::running), run("b", 2), run("c", 3, {}, RunStatus::diverged),
                  run("d", 4, {}, RunStatus::interrupted), run("e", 5, {}, RunStatus::failed)});
  EXPECT_THAT(study.unfinished(), ElementsAre(0, 3, 4));
}

TEST(Study, ValueRanksFollowTheOrderOfTheValues) {
  const Study study = make_study({run("a", 1, with(Placement::post, 6)), run("b", 1, with(Placement::pre, 12)),
                                  run("c", 1, with(Placement::post, 24))});
  const std::size_t placement = keys_of(study)[0] == "model.placement" ? 0 : 1;
  EXPECT_THAT(value_ranks(study, placement), ElementsAre(1, 0, 1));
}

TEST(OverSeeds, GivesAnIntervalFromThreeSeedsOn) {
  const std::vector<std::optional<double>> values{1.0, std::nullopt, 2.0, 4.0};
  const OverSeeds three = over_seeds(values);
  EXPECT_EQ(three.seeds, 3);
  EXPECT_DOUBLE_EQ(*three.mean, 7.0 / 3);
  // Student's quantile has a closed form for two degrees of freedom: (2p − 1)·√(2/(4p(1 − p))), p = 0.975.
  const double half = 0.95 * std::sqrt(2 / 0.0975) * std::sqrt(7.0 / 3) / std::sqrt(3.0);
  EXPECT_NEAR(three.interval->low, 7.0 / 3 - half, 1e-12);
  EXPECT_NEAR(three.interval->high, 7.0 / 3 + half, 1e-12);

  const std::vector<std::optional<double>> two{1.0, 2.0};
  EXPECT_EQ(over_seeds(two).mean, 1.5);
  EXPECT_FALSE(over_seeds(two).interval);
  EXPECT_FALSE(over_seeds({}).mean);
}

TEST(OverSeeds, RatiosHaveAGeometricMean) {
  const std::vector<std::optional<double>> values{0.01, 1.0, 100.0, std::nullopt};
  const OverSeeds result = geometric_over_seeds(values);
  EXPECT_EQ(result.seeds, 3);
  EXPECT_NEAR(*result.mean, 1, 1e-12);
  EXPECT_NEAR(result.interval->low * result.interval->high, 1, 1e-12);
  EXPECT_LT(result.interval->low, 0.001);
  // Without the seed whose gradient vanished altogether the mean would look too good.
  for (const double none : {0.0, static_cast<double>(INFINITY)})
    EXPECT_FALSE(geometric_over_seeds(std::vector<std::optional<double>>{1.0, 2.0, 3.0, none}).mean);
}

}  // namespace
}  // namespace gradflow
