#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "output/log.h"

namespace gradflow {

/// Where a run stands after a step.
struct ProgressPoint {
  std::int64_t step = 0;  ///< done, from 1
  std::int64_t steps = 0;
  std::int64_t tokens = 0;  ///< seen so far
  double loss = 0;
  double learning_rate = 0;
  double grad_norm = 0;
  std::int64_t spikes = 0;  ///< episodes so far
};

/// One line of step, loss, learning rate, gradient norm, spikes, speed and time left; the last two when known. At most
/// `columns` characters: where it does not fit, blanks go first, then the least important fields.
std::string progress_text(const ProgressPoint& point, std::optional<double> tokens_per_second,
                          std::optional<double> seconds_left, std::size_t columns);

enum class ProgressStyle {
  terminal,  ///< one line, rewritten in place at most ten times a second
  plain,     ///< a line every five seconds
  quiet,     ///< nothing
};

/// By what standard error is: a terminal (that can go back in its line) or anything else.
ProgressStyle progress_style(bool quiet);

/// Columns of the terminal behind standard error now; 80 where it does not say.
std::size_t progress_columns();

/// The progress of a run, said through its log. In every style run.log gets the plain lines.
class Progress {
 public:
  using Clock = std::chrono::steady_clock;

  /// `now` and `columns` are replaced in tests.
  Progress(Log& log, ProgressStyle style, std::function<Clock::time_point()> now = Clock::now,
           std::function<std::size_t()> columns = progress_columns);

  /// After each step; two comparisons when nothing is due.
  void update(const ProgressPoint& point);
  /// At the end, however the run ends: the last point as a plain line; nothing without one.
  void finish();

 private:
  std::string text(std::size_t columns) const;

  Log& log_;
  ProgressStyle style_;
  std::function<Clock::time_point()> now_;
  std::function<std::size_t()> columns_;
  Clock::time_point next_status_;
  Clock::time_point next_plain_;
  // Speed is that of the steps after the first point: start-up does not count, and a resumed run is not too fast.
  std::optional<ProgressPoint> first_;
  Clock::time_point first_time_;
  ProgressPoint latest_;
  Clock::time_point latest_time_;
};

}  // namespace gradflow
