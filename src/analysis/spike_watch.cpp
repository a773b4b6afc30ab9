#include "analysis/spike_watch.h"

#include <cmath>
#include <utility>

namespace gradflow {

namespace {

SpikeSettings settings_of(const SpikeConfig& config, double min_jump) {
  return {config.window, config.level_window, config.threshold, config.min_count,
          min_jump,      config.rearm,        config.max_gap};
}

}  // namespace

std::string_view name_of(SpikeSeries series) { return series == SpikeSeries::loss ? "loss" : "grad_norm"; }

SpikeWatch::SpikeWatch(const SpikeConfig& config, std::vector<SubLayerName> rows)
    : rows_(std::move(rows)),
      series_{Series{SpikeDetector(settings_of(config, config.min_jump_loss)), 0, {}},
              Series{SpikeDetector(settings_of(config, config.min_jump_grad_norm)), 0, {}}},
      evidence_(rows_.size(), settings_of(config, SpikeEvidence::min_jump)) {}

StepSpikes SpikeWatch::add(const StepNumbers& numbers) {
  evidence_.add(numbers.step, numbers.layer_grad_norm, numbers.layer_update_ratio);
  auto& [loss, grad_norm] = series_;
  StepSpikes result;

  const Judgement of_loss = loss.detector.add(numbers.step, numbers.loss);
  const Judgement of_norm = numbers.grad_norm == 0 ? grad_norm.detector.skip(numbers.step)
                                                   : grad_norm.detector.add(numbers.step, std::log(numbers.grad_norm));
  result.loss = of_loss.flagged;
  result.grad_norm = of_norm.flagged;
  follow(SpikeSeries::loss, of_loss, numbers.loss, result);
  follow(SpikeSeries::grad_norm, of_norm, numbers.grad_norm, result);
  if (!loss.detector.open() && !grad_norm.detector.open()) evidence_.stop();
  return result;
}

void SpikeWatch::follow(SpikeSeries name, const Judgement& judgement, double raw_value, StepSpikes& result) {
  Series& series = series_[static_cast<std::size_t>(name)];
  if (judgement.opened) {
    ++episodes_;
    evidence_.start();
    series.first.reset();
  }
  if (judgement.new_peak) series.peak = raw_value;
  const Episode* episode = judgement.closed ? &*judgement.closed : series.detector.open();
  if (episode == nullptr) return;
  if (!series.first) series.first = evidence_.first_flag(episode->start_step);
  if (judgement.closed) result.ended.push_back(row(name, *judgement.closed));
}

std::vector<SpikeRow> SpikeWatch::finish(std::int64_t last_step) {
  std::vector<SpikeRow> rows;
  for (const SpikeSeries name : {SpikeSeries::loss, SpikeSeries::grad_norm})
    if (const auto episode = series_[static_cast<std::size_t>(name)].detector.finish(last_step))
      rows.push_back(row(name, *episode));
  evidence_.stop();
  return rows;
}

SpikeRow SpikeWatch::row(SpikeSeries name, const Episode& episode) const {
  const Series& series = series_[static_cast<std::size_t>(name)];
  SpikeRow row;
  row.series = name;
  row.kind = episode.kind;
  row.start_step = episode.start_step;
  row.peak_step = episode.peak_step;
  row.end_step = episode.end_step;
  row.level_before = episode.level_before;
  if (name == SpikeSeries::grad_norm && row.level_before) row.level_before = std::exp(*row.level_before);
  row.peak = series.peak;  // not exp of the logarithm: the very number that steps.csv shows
  row.score = episode.score;
  row.recovered = episode.recovered;
  if (series.first && series.first->step <= episode.peak_step)
    row.first = {series.first->step, rows_[series.first->row], series.first->quantity, series.first->score};
  return row;
}

SpikeWatch::State SpikeWatch::state() const {
  return {{series_[0].detector.state(), series_[1].detector.state()},
          {series_[0].peak, series_[1].peak},
          {series_[0].first, series_[1].first},
          evidence_.state(),
          episodes_};
}

void SpikeWatch::restore(const State& state) {
  for (std::size_t i = 0; i < series_.size(); ++i) {
    series_[i].detector.restore(state.detectors[i]);
    series_[i].peak = state.peaks[i];
    series_[i].first = state.first[i];
  }
  evidence_.restore(state.evidence);
  episodes_ = state.episodes;
}

std::vector<Cell> cells(const SpikeRow& row) {
  std::vector<Cell> result{std::string(name_of(row.series)),
                           std::string(name_of(row.kind)),
                           row.start_step,
                           row.peak_step,
                           row.end_step,
                           cell(row.level_before),
                           row.peak,
                           row.score,
                           std::int64_t{row.recovered}};
  if (row.first) {
    result.insert(result.end(), {row.first->step, row.first->name.layer, row.first->name.sublayer,
                                 std::string(name_of(row.first->quantity)), row.first->score});
  } else {
    result.resize(result.size() + 5);
  }
  return result;
}

}  // namespace gradflow
