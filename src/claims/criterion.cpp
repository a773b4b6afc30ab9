#include "claims/criterion.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/numbers.h"

namespace gradflow {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::int64_t fewest_seeds = 3;

/// A bound as its file has it: rounded, a narrow region would look empty.
std::string text_of(double bound) { return shortest(bound); }

/// How many seeds of this spread would make the interval end before the bound; absent beyond a thousand.
std::optional<std::int64_t> seeds_needed(double distance, double deviation, std::int64_t at_least) {
  for (std::int64_t n = at_least; n <= 1000; ++n)
    if (student_quantile(0.975, n - 1) * deviation / std::sqrt(static_cast<double>(n)) < distance) return n;
  return std::nullopt;
}

/// What the interval leaves open, for people.
std::string too_wide(const Criterion& criterion, double value, double deviation, std::int64_t seeds) {
  const double bound = criterion.reproduced.nearest_bound(value);
  std::string text = fmt::format("the interval reaches over {}", text_of(bound));
  if (const auto needed = seeds_needed(std::abs(value - bound), deviation, seeds + 1))
    text += fmt::format("; with this mean and spread {} seeds would decide", *needed);
  else
    text += "; no reasonable number of seeds would decide with this mean and spread";
  return text;
}

MeanInterval interval_of(std::span<const double> values) {
  const auto interval = student_interval(values);
  // Equal numbers have no spread, but their mean may be rounded.
  if (interval && *std::min_element(values.begin(), values.end()) == *std::max_element(values.begin(), values.end()))
    return {values.front(), values.front(), values.front()};
  return interval.value_or(MeanInterval{values.front(), values.front(), values.front()});
}

}  // namespace

Region Region::above(double bound) { return {Kind::above, bound, infinity}; }
Region Region::below(double bound) { return {Kind::below, -infinity, bound}; }
Region Region::between(double low, double high) { return {Kind::between, low, high}; }
Region Region::outside(double low, double high) { return {Kind::outside, low, high}; }

bool Region::contains(double value) const {
  switch (kind_) {
    case Kind::above: return value > low_;
    case Kind::below: return value < high_;
    case Kind::between: return value >= low_ && value <= high_;
    case Kind::outside: return value < low_ || value > high_;
  }
  return false;
}

bool Region::holds(const MeanInterval& interval) const {
  if (kind_ == Kind::outside) return interval.high < low_ || interval.low > high_;
  return contains(interval.low) && contains(interval.high);
}

bool Region::meets(const MeanInterval& interval) const {
  if (kind_ == Kind::outside) return contains(interval.low) || contains(interval.high);
  if (kind_ == Kind::between) return interval.high >= low_ && interval.low <= high_;
  return contains(interval.low) || contains(interval.high);
}

std::vector<std::pair<double, double>> Region::pieces() const {
  if (kind_ == Kind::outside) return {{-infinity, low_}, {high_, infinity}};
  return {{low_, high_}};
}

bool Region::overlaps(const Region& other) const {
  for (const auto& [low, high] : pieces())
    for (const auto& [other_low, other_high] : other.pieces()) {
      const double from = std::max(low, other_low), to = std::min(high, other_high);
      if (from < to || (from == to && contains(from) && other.contains(from))) return true;
    }
  return false;
}

double Region::nearest_bound(double value) const {
  if (kind_ == Kind::above) return low_;
  if (kind_ == Kind::below) return high_;
  return std::abs(value - low_) <= std::abs(value - high_) ? low_ : high_;
}

std::string Region::words() const {
  switch (kind_) {
    case Kind::above: return "above " + text_of(low_);
    case Kind::below: return "below " + text_of(high_);
    case Kind::between:
      return low_ == high_ ? "exactly " + text_of(low_) : fmt::format("from {} to {}", text_of(low_), text_of(high_));
    case Kind::outside: return fmt::format("outside of {} to {}", text_of(low_), text_of(high_));
  }
  return "";
}

std::string Criterion::words() const {
  return fmt::format("reproduced {}, refuted {}", reproduced.words(), refuted.words());
}

ClaimJudgement judge(std::span<const double> values, const Criterion& criterion, Averaging averaging) {
  ClaimJudgement result;
  result.seeds = static_cast<std::int64_t>(values.size());
  if (values.empty()) {
    result.reason = "there is no number";
    return result;
  }
  const bool geometric = averaging == Averaging::geometric;
  std::vector<double> numbers(values.begin(), values.end());
  for (double& number : numbers) {
    if (!std::isfinite(number) || (geometric && number <= 0)) {
      result.reason = fmt::format("one of the numbers is {}, which has no {}", shortest(number),
                                  std::isfinite(number) ? "logarithm" : "mean");
      return result;
    }
    if (geometric) number = std::log(number);
  }
  const auto shown = [&](double number) { return geometric ? std::exp(number) : number; };
  result.value = shown(*mean(numbers));
  if (averaging != Averaging::exact && numbers.size() >= 2) {
    const MeanInterval interval = interval_of(numbers);
    result.interval = MeanInterval{shown(interval.mean), shown(interval.low), shown(interval.high)};
  } else if (averaging == Averaging::exact) {
    result.interval = MeanInterval{numbers.front(), numbers.front(), numbers.front()};
  }
  if (averaging != Averaging::exact && result.seeds < fewest_seeds) {
    result.reason =
        fmt::format("{} seed{}; an interval needs {}", result.seeds, result.seeds == 1 ? "" : "s", fewest_seeds);
    return result;
  }

  const double value = *result.value;
  const MeanInterval& interval = *result.interval;
  const auto far = [&](const Region& region) {
    return fmt::format("{} away from {}", significant(std::abs(value - region.nearest_bound(value)), 4),
                       text_of(region.nearest_bound(value)));
  };
  if (criterion.reproduced.holds(interval)) {
    result.verdict = ClaimVerdict::reproduced;
    result.reason =
        fmt::format("{} was asked for; the mean lies {}", criterion.reproduced.words(), far(criterion.reproduced));
  } else if (criterion.refuted.holds(interval)) {
    result.verdict = ClaimVerdict::refuted;
    result.reason = fmt::format("{} shows the opposite; {} would have reproduced it", criterion.refuted.words(),
                                criterion.reproduced.words());
  } else if (!criterion.reproduced.meets(interval)) {
    result.verdict = ClaimVerdict::not_reproduced;
    result.reason = fmt::format("{} was asked for; the mean lies {}; only {} would refute it",
                                criterion.reproduced.words(), far(criterion.reproduced), criterion.refuted.words());
  } else {
    result.reason =
        geometric ? fmt::format("the interval reaches over {}", text_of(criterion.reproduced.nearest_bound(value)))
                  : too_wide(criterion, value, *sample_std(numbers), result.seeds);
  }
  return result;
}

}  // namespace gradflow
