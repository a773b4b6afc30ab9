#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/statistics.h"

namespace gradflow {

// Numbers as the report writes them, for people. "–" stands for what does not exist.

/// As `significant` writes it, like every other text of this program, so that a number reads the same in a report and
/// in a terminal; "–" for nan.
std::string number_text(double value, int digits = 4);
std::string number_text(const std::optional<double>& value, int digits = 4);

/// The same with its sign always written, − as a minus and not as a hyphen.
std::string signed_text(double value, int digits = 3);

/// ": 1.711 ± 0.047"; the mean alone where there is no interval.
struct MeanText {
  std::string mean;
  std::string half_width;  ///< empty where there is none
  std::string text() const { return half_width.empty() ? mean : mean + " ± " + half_width; }
};

/// Mean and 95 % Student interval over seeds, the interval from three values on: two say next to nothing.
MeanText mean_text(const std::vector<double>& values, int digits = 4);
/// Half the width of that interval; absent below three values.
std::optional<double> half_width(const std::vector<double>& values);

/// exp of the mean of the logarithms; absent unless all are positive and finite and there is one.
std::optional<double> geometric_mean(const std::vector<double>& values);

/// "1.20 to 1.41", or one number when both read the same.
std::string range_text(double low, double high, int digits = 3);

/// "pre", "pre and post", "pre, post and deepnorm".
std::string listed(const std::vector<std::string>& words);
/// "1 seed", "3 seeds".
std::string counted(std::size_t count, const std::string& word);

}  // namespace gradflow
