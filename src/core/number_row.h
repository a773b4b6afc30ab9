#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

namespace gradflow {

// A structure of numbers as one row of doubles, and back, to the bit. One function visits the members for both:
//
//   template <class Row, class Point> void members(Row& row, Point& point) { row(point.step); row(point.loss); }
//
// Whole numbers must lie within ±2^53, where doubles are exact.

class NumberRowWriter {
 public:
  template <class T>
  void operator()(const T& value) {
    row_.push_back(static_cast<double>(value));
  }
  template <class T>
  void operator()(const std::optional<T>& value) {
    optional(value, [](NumberRowWriter& row, const T& there) { row(there); });
  }
  void operator()(const std::vector<double>& values) {
    (*this)(values.size());
    row_.insert(row_.end(), values.begin(), values.end());
  }
  template <class T, class Each>
  void optional(const std::optional<T>& value, Each each) {
    (*this)(value.has_value());
    if (value) each(*this, *value);
  }
  template <class T, class Each>
  void list(const std::vector<T>& values, Each each) {
    (*this)(values.size());
    for (const T& value : values) each(*this, value);
  }
  /// An enumeration with `count` values.
  template <class T>
  void choice(const T& value, std::size_t count) {
    (void)count;
    (*this)(static_cast<std::size_t>(value));
  }
  std::vector<double> take() { return std::move(row_); }

 private:
  std::vector<double> row_;
};

/// Throws std::range_error when the row is not one that the writer made.
class NumberRowReader {
 public:
  explicit NumberRowReader(std::span<const double> row) : rest_(row) {}

  void operator()(double& value) { value = next(); }
  void operator()(bool& value) { value = whole(0, 1) != 0; }
  void operator()(std::int64_t& value) { value = static_cast<std::int64_t>(whole(-exact, exact)); }
  void operator()(std::size_t& value) { value = static_cast<std::size_t>(whole(0, exact)); }
  template <class T>
  void operator()(std::optional<T>& value) {
    optional(value, [](NumberRowReader& row, T& there) { row(there); });
  }
  void operator()(std::vector<double>& values) {
    const std::size_t count = size();
    values.assign(rest_.begin(), rest_.begin() + static_cast<std::ptrdiff_t>(count));
    rest_ = rest_.subspan(count);
  }
  template <class T, class Each>
  void optional(std::optional<T>& value, Each each) {
    bool there = false;
    (*this)(there);
    value.reset();
    if (there) each(*this, value.emplace());
  }
  template <class T, class Each>
  void list(std::vector<T>& values, Each each) {
    values.assign(size(), T{});
    for (T& value : values) each(*this, value);
  }
  template <class T>
  void choice(T& value, std::size_t count) {
    value = static_cast<T>(static_cast<std::size_t>(whole(0, static_cast<double>(count) - 1)));
  }
  /// At the end: nothing may be left.
  void finish() const {
    if (!rest_.empty()) throw std::range_error("more numbers than expected");
  }

 private:
  static constexpr double exact = 9007199254740992.0;

  double next() {
    if (rest_.empty()) throw std::range_error("fewer numbers than expected");
    const double value = rest_.front();
    rest_ = rest_.subspan(1);
    return value;
  }
  double whole(double least, double most) {
    const double value = next();
    if (!(value >= least && value <= most) || std::floor(value) != value)
      throw std::range_error("a number that cannot stand here");
    return value;
  }
  /// Of a list: every element takes a number or more.
  std::size_t size() {
    return static_cast<std::size_t>(whole(0, static_cast<double>(rest_.empty() ? 0 : rest_.size() - 1)));
  }

  std::span<const double> rest_;
};

}  // namespace gradflow
