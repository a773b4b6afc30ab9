#include "analysis/spike_evidence.h"

#include <algorithm>
#include <cmath>

namespace gradflow {

namespace {

constexpr std::size_t quantities = 2;

}  // namespace

std::string_view name_of(LayerQuantity quantity) {
  return quantity == LayerQuantity::grad_norm ? "grad_norm" : "update_ratio";
}

SpikeEvidence::SpikeEvidence(std::size_t rows, SpikeSettings settings)
    : series_(rows * quantities), settings_(settings), ring_(ring_steps * series_) {
  settings_.min_jump = min_jump;
}

double& SpikeEvidence::ring_value(std::int64_t step, std::size_t series) {
  return ring_[static_cast<std::size_t>(step) % ring_steps * series_ + series];
}

void SpikeEvidence::add(std::int64_t step, std::span<const double> grad_norm, std::span<const double> update_ratio) {
  last_step_ = step;
  steps_ = std::min(steps_ + 1, static_cast<std::int64_t>(ring_steps));
  double* place = series_ == 0 ? nullptr : &ring_value(step, 0);
  for (std::size_t row = 0; row < series_ / quantities; ++row) {
    *place++ = row < grad_norm.size() ? grad_norm[row] : 0;
    *place++ = row < update_ratio.size() ? update_ratio[row] : 0;
  }
  if (detectors_.empty()) return;
  std::erase_if(recent_, [&](const LayerFlag& flag) { return flag.step < step - steps_before; });
  for (std::size_t series = 0; series < series_; ++series)
    if (const std::optional<LayerFlag> flag = judge(step, series)) note(*flag);
}

void SpikeEvidence::start() {
  if (!detectors_.empty()) return;
  detectors_.assign(series_, SpikeDetector(settings_));
  for (std::size_t series = 0; series < series_; ++series)
    for (std::int64_t step = last_step_ - steps_ + 1; step <= last_step_; ++step)
      if (const std::optional<LayerFlag> flag = judge(step, series); flag && step >= last_step_ - steps_before)
        note(*flag);
}

void SpikeEvidence::stop() {
  detectors_.clear();
  recent_.clear();
}

std::optional<LayerFlag> SpikeEvidence::judge(std::int64_t step, std::size_t series) {
  const double value = ring_value(step, series);
  if (value <= 0) {
    detectors_[series].skip(step);
    return std::nullopt;
  }
  const Judgement judgement = detectors_[series].add(step, std::log(value));
  if (!judgement.flagged) return std::nullopt;
  return LayerFlag{step, series / quantities, static_cast<LayerQuantity>(series % quantities), judgement.score};
}

/// Series come in row order, so that an equal score never displaces an earlier row.
void SpikeEvidence::note(const LayerFlag& flag) {
  const auto place = std::lower_bound(recent_.begin(), recent_.end(), flag.step,
                                      [](const LayerFlag& other, std::int64_t step) { return other.step < step; });
  if (place == recent_.end() || place->step != flag.step) {
    recent_.insert(place, flag);
  } else if (flag.score > place->score) {
    *place = flag;
  }
}

std::optional<LayerFlag> SpikeEvidence::first_flag(std::int64_t episode_start) const {
  for (const LayerFlag& flag : recent_)
    if (flag.step >= episode_start - steps_before) return flag;
  return std::nullopt;
}

SpikeEvidence::State SpikeEvidence::state() const {
  State state{ring_, last_step_, steps_, {}, recent_};
  for (const SpikeDetector& detector : detectors_) state.detectors.push_back(detector.state());
  return state;
}

void SpikeEvidence::restore(const State& state) {
  ring_ = state.ring;
  last_step_ = state.last_step;
  steps_ = state.steps;
  recent_ = state.recent;
  detectors_.assign(state.detectors.size(), SpikeDetector(settings_));
  for (std::size_t series = 0; series < detectors_.size(); ++series)
    detectors_[series].restore(state.detectors[series]);
}

}  // namespace gradflow
