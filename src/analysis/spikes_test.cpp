#include "analysis/spikes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

namespace gradflow {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

struct Result {
  std::vector<std::int64_t> flagged;
  std::vector<Episode> episodes;
};

/// The whole series, steps from 1.
Result detect(const std::vector<double>& series, const SpikeSettings& settings = {}) {
  SpikeDetector detector(settings);
  Result result;
  std::int64_t step = 0;
  for (const double value : series) {
    const Judgement judgement = detector.add(++step, value);
    if (judgement.flagged) result.flagged.push_back(step);
    if (judgement.closed) result.episodes.push_back(*judgement.closed);
  }
  if (const auto episode = detector.finish(step)) result.episodes.push_back(*episode);
  return result;
}

std::vector<double> quiet(std::size_t steps, double level = 2) {
  std::vector<double> series;
  for (std::size_t i = 0; i < steps; ++i) series.push_back(level + 0.001 * std::sin(static_cast<double>(i)));
  return series;
}

double number(const nlohmann::json& value) {
  if (!value.is_string()) return value.get<double>();
  if (value == "nan") return not_a_number;
  return value == "inf" ? infinity : -infinity;
}

void expect_golden(const nlohmann::json& golden) {
  const nlohmann::json& wanted_settings = golden["settings"];
  SpikeSettings settings;
  settings.window = wanted_settings["window"];
  settings.level_window = wanted_settings["level_window"];
  settings.threshold = wanted_settings["threshold"];
  settings.min_count = wanted_settings["min_count"];
  settings.min_jump = wanted_settings["min_jump"];
  settings.rearm = wanted_settings["rearm"];
  settings.max_gap = wanted_settings["max_gap"];
  std::vector<double> series;
  for (const nlohmann::json& value : golden["series"]) series.push_back(number(value));

  const Result result = detect(series, settings);
  EXPECT_EQ(result.flagged, golden["flagged_steps"].get<std::vector<std::int64_t>>());
  ASSERT_EQ(result.episodes.size(), golden["episodes"].size());
  for (std::size_t i = 0; i < result.episodes.size(); ++i) {
    const Episode& episode = result.episodes[i];
    const nlohmann::json& wanted = golden["episodes"][i];
    EXPECT_EQ(name_of(episode.kind), wanted["kind"].get<std::string>());
    EXPECT_EQ(episode.start_step, wanted["start_step"].get<std::int64_t>());
    EXPECT_EQ(episode.peak_step, wanted["peak_step"].get<std::int64_t>());
    EXPECT_EQ(episode.end_step, wanted["end_step"].get<std::int64_t>());
    EXPECT_EQ(episode.recovered, wanted["recovered"].get<bool>());
    EXPECT_EQ(episode.score, number(wanted["score"]));
    if (std::isnan(number(wanted["peak"]))) {
      EXPECT_TRUE(std::isnan(episode.peak));
    } else {
      EXPECT_EQ(episode.peak, number(wanted["peak"]));
    }
    ASSERT_EQ(episode.level_before.has_value(), !wanted["level_before"].is_null());
    if (episode.level_before) {
      EXPECT_EQ(*episode.level_before, wanted["level_before"].get<double>());
    }
  }
}

TEST(SpikeDetector, ReproducesTheReferenceExactly) {
  std::size_t cases = 0;
  for (const auto& entry : std::filesystem::directory_iterator("src/testing/golden/spikes")) {
    SCOPED_TRACE(entry.path());
    expect_golden(nlohmann::json::parse(std::ifstream(entry.path())));
    ++cases;
  }
  EXPECT_GE(cases, 14u);
}

TEST(SpikeDetector, OneEnormousSpikeDoesNotHideTheNext) {
  std::vector<double> series = quiet(20);
  for (const double value : {2.0, 2.0, 2.0, 2e6, 2.0, 20.0, 2.0}) series.push_back(value);
  EXPECT_EQ(detect(series).flagged, (std::vector<std::int64_t>{24, 26}));
}

TEST(SpikeDetector, FlagsNothingBeforeMinCountButEveryNonfiniteValue) {
  std::vector<double> series(15, 2.0);
  series.push_back(50);  // the 16th value: only 15 are accepted
  EXPECT_TRUE(detect(series).flagged.empty());
  EXPECT_EQ(detect({not_a_number, infinity, -infinity}).flagged, (std::vector<std::int64_t>{1, 2, 3}));
  EXPECT_FALSE(detect({not_a_number}).episodes.at(0).level_before.has_value());
}

TEST(SpikeDetector, NonfiniteValueIsAnEpisodeThatDoesNotEndByItself) {
  const Result result = detect({2, 2, not_a_number});
  ASSERT_EQ(result.episodes.size(), 1u);
  EXPECT_EQ(result.episodes[0].kind, EpisodeKind::nonfinite);
  EXPECT_EQ(result.episodes[0].score, infinity);
  EXPECT_FALSE(result.episodes[0].recovered);
  EXPECT_EQ(result.episodes[0].level_before, 2);
}

TEST(SpikeDetector, RiseUpToMinJumpIsNone) {
  std::vector<double> series(30, 2.0);
  series.push_back(2.0999);
  EXPECT_TRUE(detect(series).flagged.empty());
  series.back() = 2.1001;
  EXPECT_EQ(detect(series).flagged, std::vector<std::int64_t>{31});
}

TEST(SpikeDetector, FallIsNone) {
  std::vector<double> series = quiet(30);
  series.push_back(-1e9);
  EXPECT_TRUE(detect(series).flagged.empty());
}

TEST(SpikeDetector, StepsWithoutValueEndAnEpisode) {
  SpikeDetector detector({});
  std::int64_t step = 0;
  for (const double value : quiet(20)) detector.add(++step, value);
  EXPECT_TRUE(detector.add(21, 9).opened);
  for (step = 22; step <= 26; ++step) EXPECT_FALSE(detector.skip(step).closed);
  const Judgement judgement = detector.skip(27);
  ASSERT_TRUE(judgement.closed);
  EXPECT_TRUE(judgement.closed->recovered);
  EXPECT_EQ(detector.open(), nullptr);
}

TEST(SpikeDetector, ShiftRearmsWithTheNewLevel) {
  std::vector<double> series = quiet(40);
  for (const double value : quiet(60, 5)) series.push_back(value);
  series.push_back(8);
  const Result result = detect(series);
  ASSERT_EQ(result.episodes.size(), 2u);
  EXPECT_EQ(result.episodes[0].kind, EpisodeKind::shift);
  EXPECT_EQ(result.episodes[0].end_step, 72);
  EXPECT_EQ(result.episodes[1].start_step, 101);
  EXPECT_NEAR(*result.episodes[1].level_before, 5, 0.01);
}

TEST(SpikeDetector, RestoredGoesOnAsIfNothingHadHappened) {
  std::vector<double> series = quiet(50);
  series[30] = 7;
  series[33] = 9;
  SpikeDetector whole({});
  SpikeDetector first({});
  for (std::int64_t step = 1; step <= 50; ++step) {
    const double value = series[static_cast<std::size_t>(step - 1)];
    const Judgement wanted = whole.add(step, value);
    SpikeDetector next({});
    next.restore(first.state());
    const Judgement judgement = next.add(step, value);
    EXPECT_EQ(judgement.flagged, wanted.flagged);
    EXPECT_EQ(judgement.score, wanted.score);
    EXPECT_EQ(judgement.closed.has_value(), wanted.closed.has_value());
    first.restore(next.state());
  }
}

}  // namespace
}  // namespace gradflow
