#include "output/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <sstream>
#include <string>

#include "core/files.h"
#include "testing/temporary_folder.h"

namespace gradflow {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;

const ProgressPoint half{.step = 100,
                         .steps = 200,
                         .tokens = 51200,
                         .loss = 1.73412,
                         .learning_rate = 9.67e-5,
                         .grad_norm = 0.52134,
                         .spikes = 2};

/// A progress whose clock and width the test holds.
class ProgressTest : public testing::Test {
 protected:
  Progress progress(ProgressStyle style) {
    log.open_file(folder / "run.log");
    return Progress(
        log, style, [this] { return time; }, [this] { return columns; });
  }
  /// `count` steps of this length, 100 tokens each.
  void steps(Progress& progress, int count, milliseconds each) {
    for (int i = 0; i < count; ++i) {
      time += each;
      ++step;
      progress.update({.step = step, .steps = 1000, .tokens = 100 * step, .loss = 2, .learning_rate = 0.001});
    }
  }
  int count(const std::string& text, char wanted) const {
    return static_cast<int>(std::count(text.begin(), text.end(), wanted));
  }

  TemporaryFolder folder;
  std::ostringstream terminal;
  Log log{terminal};
  Progress::Clock::time_point time{seconds(1000)};
  std::size_t columns = 120;
  std::int64_t step = 0;
};

TEST(ProgressText, SaysHowTheRunStands) {
  EXPECT_EQ(progress_text(half, 53127.0, 12.2, 120),
            "step 100/200  loss 1.734  lr 9.67e-5  grad 0.521  spikes 2  53.1k tokens/s  0:12 left");
  EXPECT_EQ(progress_text(half, std::nullopt, std::nullopt, 120),
            "step 100/200  loss 1.734  lr 9.67e-5  grad 0.521  spikes 2");
}

TEST(ProgressText, ShowsNonFiniteNumbers) {
  ProgressPoint point = half;
  point.loss = std::numeric_limits<double>::quiet_NaN();
  point.grad_norm = std::numeric_limits<double>::infinity();
  EXPECT_THAT(progress_text(point, std::nullopt, std::nullopt, 120), HasSubstr("loss nan  lr 9.67e-5  grad inf"));
}

TEST(ProgressText, FitsEightyColumnsWithAllItsFields) {
  const std::string line = progress_text(half, 53127.0, 12.2, 79);
  EXPECT_EQ(line, "step 100/200 loss 1.734 lr 9.67e-5 grad 0.521 spikes 2 53.1k tokens/s 0:12 left");
}

TEST(ProgressText, NeverGetsWiderThanItMay) {
  for (std::size_t columns = 1; columns < 100; ++columns)
    EXPECT_LE(progress_text(half, 53127.0, 12.2, columns).size(), columns);
  EXPECT_EQ(progress_text(half, 53127.0, 12.2, 40), "step 100/200  loss 1.734  0:12 left");
  EXPECT_EQ(progress_text(half, 53127.0, 12.2, 8), "step 100");
}

TEST(ProgressText, WritesTimesAndSpeedsForPeople) {
  const auto left = [](double seconds_left) { return progress_text(half, std::nullopt, seconds_left, 200); };
  EXPECT_THAT(left(0), HasSubstr("  0:00 left"));
  EXPECT_THAT(left(725), HasSubstr("  12:05 left"));
  EXPECT_THAT(left(3723), HasSubstr("  1:02:03 left"));
  EXPECT_THAT(left(3 * 86400 + 4 * 3600 + 300), HasSubstr("  3d 04:05 left"));
  const auto speed = [](double rate) { return progress_text(half, rate, std::nullopt, 200); };
  EXPECT_THAT(speed(0.25), HasSubstr("  0.25 tokens/s"));
  EXPECT_THAT(speed(812), HasSubstr("  812 tokens/s"));
  EXPECT_THAT(speed(1.2e6), HasSubstr("  1.2M tokens/s"));
}

TEST_F(ProgressTest, ATerminalGetsOneLineThatIsRewrittenAtMostTenTimesASecond) {
  Progress line = progress(ProgressStyle::terminal);
  steps(line, 1000, milliseconds(2));  // two seconds
  EXPECT_EQ(count(terminal.str(), '\n'), 0);
  EXPECT_LE(count(terminal.str(), '\r'), 21);
  EXPECT_GE(count(terminal.str(), '\r'), 19);
}

TEST_F(ProgressTest, TheLineNeverReachesTheLastColumn) {
  columns = 30;
  Progress line = progress(ProgressStyle::terminal);
  steps(line, 50, milliseconds(100));
  std::istringstream drawn(terminal.str());
  for (std::string part; std::getline(drawn, part, '\r');) EXPECT_LE(part.size(), 29u);
}

TEST_F(ProgressTest, TheLineFollowsTheWindow) {
  Progress line = progress(ProgressStyle::terminal);
  steps(line, 2, milliseconds(200));
  EXPECT_THAT(terminal.str(), HasSubstr("spikes"));
  terminal.str("");
  columns = 20;
  steps(line, 1, milliseconds(200));
  EXPECT_THAT(terminal.str(), Not(HasSubstr("spikes")));
}

TEST_F(ProgressTest, SpeedAndTimeLeftFollowFromTheStepsSinceTheFirst) {
  Progress line = progress(ProgressStyle::plain);
  time += seconds(60);  // start-up
  step = 499;           // as after a resumption
  steps(line, 1, milliseconds(0));
  steps(line, 10, milliseconds(1000));
  EXPECT_THAT(terminal.str(),
              HasSubstr("step 505/1000  loss 2  lr 0.001  grad 0  spikes 0  100 tokens/s  8:15 left\n"));
}

TEST_F(ProgressTest, AnythingElseGetsALineEveryFiveSeconds) {
  Progress line = progress(ProgressStyle::plain);
  steps(line, 200, milliseconds(100));  // twenty seconds
  EXPECT_EQ(count(terminal.str(), '\n'), 4);
  EXPECT_EQ(count(terminal.str(), '\r'), 0);
}

TEST_F(ProgressTest, RunLogHoldsThePlainLinesInEveryStyle) {
  for (const ProgressStyle style : {ProgressStyle::terminal, ProgressStyle::plain, ProgressStyle::quiet}) {
    remove_file(folder / "run.log");
    Progress line = progress(style);
    steps(line, 120, milliseconds(100));
    line.finish();
    const std::string text = read_file(folder / "run.log");
    EXPECT_EQ(count(text, '\n'), 3);
    EXPECT_EQ(count(text, '\r'), 0);
    EXPECT_THAT(text, HasSubstr("loss 2"));
  }
}

TEST_F(ProgressTest, QuietSaysNothing) {
  Progress line = progress(ProgressStyle::quiet);
  steps(line, 200, milliseconds(100));
  line.finish();
  EXPECT_EQ(terminal.str(), "");
}

TEST_F(ProgressTest, EndsWithThePlainLineOfTheLastStep) {
  Progress line = progress(ProgressStyle::terminal);
  steps(line, 3, milliseconds(60));
  line.finish();
  log.note("next");
  EXPECT_THAT(terminal.str(), HasSubstr("\rstep 3/1000  loss 2  lr 0.001  grad 0  spikes 0  1.67k tokens/s  1:00 left\n"
                                        "gradflow: next\n"));
}

TEST_F(ProgressTest, WithoutAStepThereIsNothingToSay) {
  Progress line = progress(ProgressStyle::plain);
  line.finish();
  EXPECT_EQ(terminal.str(), "");
}

TEST(ProgressStyle, QuietWinsAndAPipeIsNoTerminal) {
  EXPECT_EQ(progress_style(true), ProgressStyle::quiet);
  EXPECT_GE(progress_columns(), 1u);
}

}  // namespace
}  // namespace gradflow
