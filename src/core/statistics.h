#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace gradflow {

// Everything in double. What does not exist (a mean of nothing, a line through one point) is absent, never a number.

/// The middle value; the mean of the two middle ones for an even count. The input stays as it is. Absent when empty.
std::optional<double> median(std::span<const double> values);

/// Absent when empty.
std::optional<double> mean(std::span<const double> values);

/// Standard deviation of a sample: the sum of squares about the mean is divided by n − 1. Absent below two values.
std::optional<double> sample_std(std::span<const double> values);

/// y ≈ intercept + slope·x.
struct LineFit {
  double slope = 0;
  double intercept = 0;
  double residual_sum_of_squares = 0;
};

/// Ordinary least squares. Absent below two points or when all x are equal; throws std::logic_error when the counts
/// differ.
std::optional<LineFit> fit_line(std::span<const double> x, std::span<const double> y);

/// The value that a Student variable with `degrees` ≥ 1 degrees of freedom stays below with probability 0 < p < 1. From
/// the finite series for whole degrees (Abramowitz and Stegun 26.7.3, 26.7.4); relative error below 1e-10 for p in
/// [1e-4, 1 − 1e-4].
double student_quantile(double probability, std::int64_t degrees);

/// The mean and the interval that covers the true mean with the given confidence.
struct MeanInterval {
  double mean = 0;
  double low = 0;
  double high = 0;
};

/// Student's interval: mean ± t·s/√n with n − 1 degrees of freedom. Absent below two values.
std::optional<MeanInterval> student_interval(std::span<const double> values, double confidence = 0.95);

}  // namespace gradflow
