#include "report/cell_numbers.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/number_text.h"

namespace gradflow {
namespace {

std::optional<double> ratio_of(const std::vector<double>& profile) {
  return profile.empty() ? std::nullopt : fit_profile(profile, Flow::gradient).ratio;
}

}  // namespace

std::optional<Outcome> CellNumbers::majority() const {
  for (std::size_t i = 0; i < outcomes.size(); ++i)
    if (2 * outcomes[i] > seeds) return static_cast<Outcome>(i);
  return std::nullopt;
}

std::string CellNumbers::outcome_words() const {
  std::string words;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (outcomes[i] == 0) continue;
    const std::string_view name = name_of(static_cast<Outcome>(i));
    if (outcomes[i] == seeds) return std::string(name);
    words += fmt::format("{}{} {}", words.empty() ? "" : ", ", outcomes[i], name);
  }
  return words;
}

std::string CellNumbers::counted_outcomes() const {
  const std::string words = outcome_words();
  return majority() && count(*majority()) == seeds ? fmt::format("{} {}", seeds, words) : words;
}

bool CellNumbers::is_bad() const {
  for (std::size_t i = 0; i < outcomes.size(); ++i)
    if (outcomes[i] > 0 && gradflow::is_bad(static_cast<Outcome>(i))) return true;
  return false;
}

std::string_view gradient_quantity(const Report& report) {
  return report.measured("stream_grad_norm") ? "stream_grad_norm" : "grad_norm";
}

std::string_view gradient_symbol(const Report& report) {
  return report.measured("stream_grad_norm") ? "‖∂L/∂x‖" : "‖∂L/∂W‖";
}

CellNumbers numbers_of(const Report& report, const ReportCell& cell) {
  CellNumbers numbers;
  const std::string_view quantity = gradient_quantity(report);
  std::vector<double> first_ratios, last_ratios, last_variances;
  std::vector<std::vector<double>> gradients, variances;
  for (const std::size_t index : cell.runs) {
    const ReportRun& run = report.runs[index];
    ++numbers.seeds;
    ++numbers.outcomes[static_cast<std::size_t>(run.outcome)];
    if (run.outcome == Outcome::diverged)
      numbers.diverged_at.push_back(run.last_step());
    else if (run.outcome != Outcome::unfinished && run.final_loss)
      numbers.final_losses.push_back(*run.final_loss);
    numbers.spikes += run.spikes.size();
    if (run.steps_per_second) numbers.steps_per_second.push_back(*run.steps_per_second);
    if (run.layer_steps.empty()) continue;
    // The step at which a run stopped says nothing of its profile: values there are not finite.
    const std::size_t last =
        run.layer_steps.size() - (run.outcome == Outcome::diverged && run.layer_steps.size() > 1 ? 2 : 1);
    numbers.first_step = run.layer_steps.front();
    numbers.last_step = std::max(numbers.last_step, run.layer_steps[last]);
    if (const auto ratio = ratio_of(run.profile(quantity, 0))) first_ratios.push_back(*ratio);
    if (const std::vector<double> profile = run.profile(quantity, last); !profile.empty()) {
      if (const auto ratio = ratio_of(profile)) last_ratios.push_back(*ratio);
      gradients.push_back(profile);
    }
    if (const std::vector<double> profile = run.profile("stream_variance", last); !profile.empty()) {
      last_variances.push_back(profile.back());
      variances.push_back(profile);
    }
  }
  std::sort(numbers.diverged_at.begin(), numbers.diverged_at.end());
  numbers.first_step_ratio = geometric_mean(first_ratios);
  numbers.last_step_ratio = geometric_mean(last_ratios);
  numbers.last_variance = geometric_mean(last_variances);
  numbers.gradient = depth_profile(gradients, Flow::gradient);
  numbers.variance = depth_profile(variances, Flow::activation);
  return numbers;
}

}  // namespace gradflow
