#pragma once

#include <array>
#include <optional>
#include <span>
#include <string_view>

namespace gradflow {

/// How a training run ended. A run that settles at the unigram entropy is not a
/// success: it has learned only how frequent each answer is.
enum class Verdict {
  diverged,  ///< stopped at a non-finite value, or its last losses are not finite
  learned,   ///< below H₁ − 0.3
  learning,  ///< below H₁ − 0.05
  stuck,     ///< within 0.05 of H₁
  worse,     ///< above H₁ + 0.05
};
inline constexpr std::array all_verdicts = {Verdict::learned, Verdict::learning, Verdict::stuck, Verdict::worse,
                                            Verdict::diverged};
std::string_view name_of(Verdict verdict);
/// Absent for any other word.
std::optional<Verdict> verdict_named(std::string_view word);

/// How many losses at the end count for how a run ended.
inline constexpr std::size_t final_losses = 20;

/// The mean of the last `final_losses` losses, or of all if there are fewer; absent when there is none.
std::optional<double> final_loss(std::span<const double> losses);

/// The verdict of the losses of the steps, in order (at least the last `final_losses`), against `unigram_entropy` (H₁
/// in nats; for tasks without it the loss of the best constant answer). Absent when H₁ is unknown or no step was made,
/// unless the run diverged.
std::optional<Verdict> verdict_of(std::span<const double> losses, std::optional<double> unigram_entropy,
                                  bool stopped_at_nonfinite);

}  // namespace gradflow
