#include "report/number_text.h"

#include <fmt/format.h>

#include <cmath>

#include "core/numbers.h"
#include "core/seed_mean.h"

namespace gradflow {

std::string number_text(double value, int digits) { return std::isnan(value) ? "–" : significant(value, digits); }

std::string number_text(const std::optional<double>& value, int digits) {
  return value ? number_text(*value, digits) : "–";
}

std::string signed_text(double value, int digits) {
  if (!std::isfinite(value)) return number_text(value, digits);
  return (value < 0 ? "−" : "+") + number_text(std::abs(value), digits);
}

std::optional<double> half_width(const std::vector<double>& values) {
  const std::optional<MeanInterval> interval = mean_over_seeds(values, 3).interval;
  return interval ? std::optional((interval->high - interval->low) / 2) : std::nullopt;
}

MeanText mean_text(const std::vector<double>& values, int digits) {
  const std::optional<double> half = half_width(values);
  return {number_text(mean(values), digits), half ? number_text(*half, 2) : ""};
}

std::optional<double> geometric_mean(const std::vector<double>& values) {
  return geometric_mean_over_seeds(values, 3).mean;
}

std::string range_text(double low, double high, int digits) {
  const std::string from = number_text(low, digits), to = number_text(high, digits);
  return from == to ? from : from + " to " + to;
}

std::string listed(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : i + 1 == words.size() ? " and " : ", ") + words[i];
  return text;
}

std::string counted(std::size_t count, const std::string& word) {
  return fmt::format("{} {}{}", count, word, count == 1 ? "" : "s");
}

}  // namespace gradflow
