#include "core/statistics.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <stdexcept>
#include <vector>

namespace gradflow {
namespace {

/// P(|T| < t) for t = √degrees·tan θ.
double student_central_probability(double angle, std::int64_t degrees) {
  const double sine = std::sin(angle), cosine = std::cos(angle);
  const bool odd = degrees % 2 == 1;
  // The terms run over powers of cos θ: 1, 3, 5, … up to degrees − 2 (odd), 0, 2, 4, … up to degrees − 2 (even).
  double term = odd ? cosine : 1;
  double sum = 0;
  for (std::int64_t power = odd ? 1 : 0; power <= degrees - 2; power += 2) {
    sum += term;
    const double p = static_cast<double>(power);
    term *= (p + 1) / (p + 2) * cosine * cosine;
  }
  return odd ? 2 / std::numbers::pi * (angle + sine * sum) : sine * sum;
}

}  // namespace

std::optional<double> median(std::span<const double> values) {
  if (values.empty()) return std::nullopt;
  std::vector<double> copy(values.begin(), values.end());
  const auto middle = copy.begin() + static_cast<std::ptrdiff_t>(copy.size() / 2);
  std::nth_element(copy.begin(), middle, copy.end());
  if (copy.size() % 2 == 1) return *middle;
  return 0.5 * (*std::max_element(copy.begin(), middle) + *middle);
}

std::optional<double> mean(std::span<const double> values) {
  if (values.empty()) return std::nullopt;
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

std::optional<double> sample_std(std::span<const double> values) {
  if (values.size() < 2) return std::nullopt;
  const double centre = *mean(values);
  double squares = 0;
  for (const double value : values) squares += (value - centre) * (value - centre);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

std::optional<LineFit> fit_line(std::span<const double> x, std::span<const double> y) {
  if (x.size() != y.size()) throw std::logic_error("fit_line: x and y differ in length");
  if (x.size() < 2) return std::nullopt;
  const double x_mean = *mean(x), y_mean = *mean(y);
  double xx = 0, xy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - x_mean) * (x[i] - x_mean);
    xy += (x[i] - x_mean) * (y[i] - y_mean);
  }
  if (xx == 0) return std::nullopt;
  LineFit fit;
  fit.slope = xy / xx;
  fit.intercept = y_mean - fit.slope * x_mean;
  for (std::size_t i = 0; i < x.size(); ++i) {
    // About the means, so that a far intercept costs no digits.
    const double residual = (y[i] - y_mean) - fit.slope * (x[i] - x_mean);
    fit.residual_sum_of_squares += residual * residual;
  }
  return fit;
}

double student_quantile(double probability, std::int64_t degrees) {
  if (!(probability > 0 && probability < 1) || degrees < 1)
    throw std::logic_error("student_quantile: needs 0 < probability < 1 and degrees >= 1");
  const double central = std::abs(2 * probability - 1);
  double low = 0, high = std::numbers::pi / 2;
  while (true) {
    const double angle = 0.5 * (low + high);
    if (angle <= low || angle >= high) break;
    (student_central_probability(angle, degrees) < central ? low : high) = angle;
  }
  const double quantile = std::sqrt(static_cast<double>(degrees)) * std::tan(low);
  return probability < 0.5 ? -quantile : quantile;
}

std::optional<MeanInterval> student_interval(std::span<const double> values, double confidence) {
  if (values.size() < 2) return std::nullopt;
  const double centre = *mean(values);
  const double t = student_quantile(0.5 + 0.5 * confidence, static_cast<std::int64_t>(values.size()) - 1);
  const double half = t * *sample_std(values) / std::sqrt(static_cast<double>(values.size()));
  return MeanInterval{centre, centre - half, centre + half};
}

}  // namespace gradflow
