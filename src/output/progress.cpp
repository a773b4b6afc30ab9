#include "output/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "core/numbers.h"
#include "output/terminal.h"

namespace gradflow {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr auto status_interval = milliseconds(100);
constexpr auto plain_interval = seconds(5);
constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

std::string two_digits(std::int64_t value) { return (value < 10 ? "0" : "") + std::to_string(value); }

/// 0:07, 12:05, 1:02:03, 3d 04:05
std::string duration_text(double total_seconds) {
  if (!(total_seconds < 1e9)) return "ages";
  const auto total = static_cast<std::int64_t>(std::llround(std::max(total_seconds, 0.0)));
  const std::int64_t days = total / 86400, hours = total / 3600 % 24, minutes = total / 60 % 60, rest = total % 60;
  if (days > 0) return std::to_string(days) + "d " + two_digits(hours) + ':' + two_digits(minutes);
  if (hours > 0) return std::to_string(hours) + ':' + two_digits(minutes) + ':' + two_digits(rest);
  return std::to_string(minutes) + ':' + two_digits(rest);
}

/// 812, 53.1k, 1.2M
std::string rate_text(double rate) {
  if (rate >= 1e6) return significant(rate / 1e6, 3) + 'M';
  if (rate >= 1e3) return significant(rate / 1e3, 3) + 'k';
  return significant(rate, 3);
}

struct Field {
  std::string text;
  int importance;
};

std::string joined(const std::vector<Field>& fields, std::string_view between) {
  std::string line;
  for (const Field& field : fields) line += (line.empty() ? "" : std::string(between)) + field.text;
  return line;
}

}  // namespace

std::string progress_text(const ProgressPoint& point, std::optional<double> tokens_per_second,
                          std::optional<double> seconds_left, std::size_t columns) {
  std::vector<Field> fields = {
      {"step " + std::to_string(point.step) + '/' + std::to_string(point.steps), 7},
      {"loss " + significant(point.loss, 4), 6},
      {"lr " + significant(point.learning_rate, 3), 2},
      {"grad " + significant(point.grad_norm, 3), 4},
      {"spikes " + std::to_string(point.spikes), 3},
  };
  if (tokens_per_second) fields.push_back({rate_text(*tokens_per_second) + " tokens/s", 1});
  if (seconds_left) fields.push_back({duration_text(*seconds_left) + " left", 5});

  std::string line = joined(fields, "  ");
  while (line.size() > columns) {
    line = joined(fields, " ");
    if (line.size() <= columns || fields.size() == 1) break;
    fields.erase(std::min_element(fields.begin(), fields.end(),
                                  [](const Field& a, const Field& b) { return a.importance < b.importance; }));
    line = joined(fields, "  ");
  }
  line.resize(std::min(line.size(), columns));
  return line;
}

ProgressStyle progress_style(bool quiet) {
  if (quiet) return ProgressStyle::quiet;
  const char* terminal = std::getenv("TERM");
  const bool dumb = terminal == nullptr || std::string_view(terminal) == "dumb";
  return ::isatty(STDERR_FILENO) == 1 && !dumb ? ProgressStyle::terminal : ProgressStyle::plain;
}

std::size_t progress_columns() { return terminal_columns(STDERR_FILENO).value_or(80); }

Progress::Progress(Log& log, ProgressStyle style, std::function<Clock::time_point()> now,
                   std::function<std::size_t()> columns)
    : log_(log), style_(style), now_(std::move(now)), columns_(std::move(columns)) {
  next_status_ = now_();
  next_plain_ = next_status_ + plain_interval;
}

std::string Progress::text(std::size_t columns) const {
  const double elapsed = std::chrono::duration<double>(latest_time_ - first_time_).count();
  const std::int64_t steps = latest_.step - first_->step;
  if (steps <= 0 || elapsed <= 0) return progress_text(latest_, std::nullopt, std::nullopt, columns);
  const double tokens_per_second = static_cast<double>(latest_.tokens - first_->tokens) / elapsed;
  const double seconds_left = elapsed * static_cast<double>(latest_.steps - latest_.step) / static_cast<double>(steps);
  return progress_text(latest_, tokens_per_second, seconds_left, columns);
}

void Progress::update(const ProgressPoint& point) {
  latest_ = point;
  latest_time_ = now_();
  if (!first_) {
    first_ = point;
    first_time_ = latest_time_;
  }
  if (latest_time_ >= next_plain_) {
    next_plain_ = latest_time_ + plain_interval;
    style_ == ProgressStyle::plain ? log_.line(text(unlimited)) : log_.record(text(unlimited));
  }
  if (style_ == ProgressStyle::terminal && latest_time_ >= next_status_) {
    next_status_ = latest_time_ + status_interval;
    // A terminal moves to the next line when its last column is written.
    log_.show_status(text(std::max<std::size_t>(columns_(), 2) - 1));
  }
}

void Progress::finish() {
  if (style_ == ProgressStyle::terminal) log_.clear_status();
  if (!first_) return;
  style_ == ProgressStyle::quiet ? log_.record(text(unlimited)) : log_.line(text(unlimited));
}

}  // namespace gradflow
