#include "analysis/spikes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace gradflow {

namespace {

/// The median of the values, which it reorders: hundreds of detectors run at each step, so nothing is copied.
double median_in_place(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

void keep_newest(std::vector<double>& values, std::int64_t count) {
  const auto size = static_cast<std::int64_t>(values.size());
  if (size > count) values.erase(values.begin(), values.begin() + (size - count));
}

}  // namespace

std::string_view name_of(EpisodeKind kind) {
  switch (kind) {
    case EpisodeKind::spike: return "spike";
    case EpisodeKind::nonfinite: return "nonfinite";
    case EpisodeKind::shift: return "shift";
  }
  return "";
}

double SpikeDetector::level() {
  const auto size = static_cast<std::int64_t>(state_.accepted.size());
  scratch_.assign(state_.accepted.end() - std::min(size, settings_.level_window), state_.accepted.end());
  return median_in_place(scratch_);
}

double SpikeDetector::noise() {
  const std::vector<double>& accepted = state_.accepted;
  if (accepted.size() < 2) return 0;
  scratch_.resize(accepted.size() - 1);
  for (std::size_t i = 0; i + 1 < accepted.size(); ++i) scratch_[i] = std::abs(accepted[i + 1] - accepted[i]);
  return 1.4826 / std::sqrt(2.0) * median_in_place(scratch_);
}

/// The score of a finite value when it is above the threshold, else 0.
double SpikeDetector::rise_score(double value) {
  if (state_.accepted.empty() || static_cast<std::int64_t>(state_.accepted.size()) < settings_.min_count) return 0;
  const double rise = value - level();
  // The scale is at least min_jump/threshold, so a smaller rise cannot be a spike (with a margin for the rounding of
  // the quotient); most values end here, without the noise.
  if (rise < 0.999 * settings_.min_jump) return 0;
  const double score = rise / std::max(noise(), settings_.min_jump / settings_.threshold);
  return score > settings_.threshold ? score : 0;
}

Judgement SpikeDetector::add(std::int64_t step, double value) {
  Judgement judgement;
  if (!std::isfinite(value)) {
    judgement.score = std::numeric_limits<double>::infinity();
    extend(judgement, step, value, EpisodeKind::nonfinite);
    return judgement;
  }
  judgement.score = rise_score(value);
  if (judgement.score > 0) {
    extend(judgement, step, value, EpisodeKind::spike);
    state_.run.push_back(value);
    if (static_cast<std::int64_t>(state_.run.size()) >= settings_.rearm) {
      state_.accepted = std::exchange(state_.run, {});
      keep_newest(state_.accepted, settings_.window);
      judgement.closed = close(false);
      judgement.closed->kind = EpisodeKind::shift;
    }
    return judgement;
  }
  state_.run.clear();
  state_.accepted.push_back(value);
  keep_newest(state_.accepted, settings_.window);
  close_after_gap(judgement, step);
  return judgement;
}

Judgement SpikeDetector::skip(std::int64_t step) {
  Judgement judgement;
  close_after_gap(judgement, step);
  return judgement;
}

std::optional<Episode> SpikeDetector::finish(std::int64_t last_step) {
  if (!state_.open) return std::nullopt;
  return close(last_step > state_.open->end_step);
}

void SpikeDetector::extend(Judgement& judgement, std::int64_t step, double value, EpisodeKind kind) {
  judgement.flagged = true;
  judgement.opened = !state_.open;
  if (judgement.opened) {
    state_.open.emplace();
    state_.open->kind = kind;
    state_.open->start_step = step;
    if (!state_.accepted.empty()) state_.open->level_before = level();
  }
  Episode& episode = *state_.open;
  episode.end_step = step;
  const bool first_nonfinite = kind == EpisodeKind::nonfinite && episode.kind != EpisodeKind::nonfinite;
  judgement.new_peak = judgement.opened || first_nonfinite || judgement.score > episode.score;
  if (kind == EpisodeKind::nonfinite) episode.kind = kind;
  if (!judgement.new_peak) return;
  episode.peak_step = step;
  episode.peak = value;
  episode.score = judgement.score;
}

void SpikeDetector::close_after_gap(Judgement& judgement, std::int64_t step) {
  if (state_.open && step - state_.open->end_step > settings_.max_gap) judgement.closed = close(true);
}

Episode SpikeDetector::close(bool recovered) {
  Episode episode = *state_.open;
  state_.open.reset();
  episode.recovered = recovered;
  return episode;
}

}  // namespace gradflow
