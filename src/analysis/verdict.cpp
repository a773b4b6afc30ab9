#include "analysis/verdict.h"

#include <algorithm>
#include <cmath>

#include "core/statistics.h"

namespace gradflow {

std::string_view name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::diverged: return "diverged";
    case Verdict::learned: return "learned";
    case Verdict::learning: return "learning";
    case Verdict::stuck: return "stuck";
    case Verdict::worse: return "worse";
  }
  return "";
}

std::optional<Verdict> verdict_named(std::string_view word) {
  for (const Verdict verdict : all_verdicts)
    if (name_of(verdict) == word) return verdict;
  return std::nullopt;
}

std::optional<double> final_loss(std::span<const double> losses) {
  return mean(losses.last(std::min(final_losses, losses.size())));
}

std::optional<Verdict> verdict_of(std::span<const double> losses, std::optional<double> unigram_entropy,
                                  bool stopped_at_nonfinite) {
  if (stopped_at_nonfinite) return Verdict::diverged;
  const std::optional<double> loss = final_loss(losses);
  if (loss && !std::isfinite(*loss)) return Verdict::diverged;
  if (!loss || !unigram_entropy) return std::nullopt;
  const double above = *loss - *unigram_entropy;
  if (above < -0.3) return Verdict::learned;
  if (above < -0.05) return Verdict::learning;
  return above <= 0.05 ? Verdict::stuck : Verdict::worse;
}

}  // namespace gradflow
