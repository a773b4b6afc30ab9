#include "core/clock.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace gradflow {
namespace {

TEST(Clock, SleepIsNoWorkOfTheProcessor) {
  const double wall = seconds_on(ClockKind::wall), processor = seconds_on(ClockKind::processor);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_GE(seconds_on(ClockKind::wall) - wall, 0.1);
  EXPECT_LT(seconds_on(ClockKind::processor) - processor, 0.1);
}

TEST(Clock, WorkIsBoth) {
  const double wall = seconds_on(ClockKind::wall), processor = seconds_on(ClockKind::processor);
  while (seconds_on(ClockKind::processor) - processor < 0.02) {
  }
  EXPECT_GE(seconds_on(ClockKind::wall) - wall, 0.019);
}

}  // namespace
}  // namespace gradflow
