#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "analysis/profile.h"
#include "report/report.h"

namespace gradflow {

inline constexpr std::size_t outcome_count = 7;

/// What the runs of a cell come to.
struct CellNumbers {
  std::array<std::size_t, outcome_count> outcomes{};  ///< how many seeds ended so, in the order of Outcome
  std::size_t seeds = 0;
  std::vector<double> final_losses;       ///< of the runs that came to their end without diverging
  std::vector<std::int64_t> diverged_at;  ///< steps, in order

  // ‖∂L/∂x‖ of the blocks; ‖∂L/∂W‖ where no run of the study has measured that.
  std::optional<double> first_step_ratio, last_step_ratio;  ///< first block over last, geometric mean over seeds
  std::int64_t first_step = 0, last_step = 0;               ///< which layer steps these are
  DepthProfile gradient;                                    ///< at the last layer step of each run
  DepthProfile variance;                                    ///< of the stream
  std::optional<double> last_variance;                      ///< after the last block, geometric mean over seeds

  std::size_t spikes = 0;                ///< episodes of all seeds
  std::vector<double> steps_per_second;  ///< of the runs that have enough steps to tell

  std::size_t count(Outcome outcome) const { return outcomes[static_cast<std::size_t>(outcome)]; }
  /// The outcome of more than half of the seeds.
  std::optional<Outcome> majority() const;
  /// "learned", "2 learned, 1 stuck".
  std::string outcome_words() const;
  /// "3 learned", "2 learned, 1 stuck".
  std::string counted_outcomes() const;
  /// Whether a seed's result is no better than the unigram entropy.
  bool is_bad() const;
};
CellNumbers numbers_of(const Report& report, const ReportCell& cell);

/// stream_grad_norm, or grad_norm where the study has not measured it.
std::string_view gradient_quantity(const Report& report);
/// "‖∂L/∂x‖" of the one, "‖∂L/∂W‖" of the other.
std::string_view gradient_symbol(const Report& report);

}  // namespace gradflow
