#include "analysis/spike_state.h"

#include <stdexcept>

#include "core/number_row.h"

namespace gradflow {
namespace {

template <class Row, class Value>
void episode(Row& row, Value& value) {
  row.choice(value.kind, 3);
  row(value.start_step);
  row(value.peak_step);
  row(value.end_step);
  row(value.level_before);
  row(value.peak);
  row(value.score);
  row(value.recovered);
}

template <class Row, class Value>
void flag(Row& row, Value& value) {
  row(value.step);
  row(value.row);
  row.choice(value.quantity, 2);
  row(value.score);
}

template <class Row, class Value>
void detector(Row& row, Value& value) {
  row(value.accepted);
  row(value.run);
  row.optional(value.open, [](auto& inner, auto& open) { episode(inner, open); });
}

template <class Row, class Value>
void evidence(Row& row, Value& value) {
  row(value.ring);
  row(value.last_step);
  row(value.steps);
  row.list(value.detectors, [](auto& inner, auto& one) { detector(inner, one); });
  row.list(value.recent, [](auto& inner, auto& one) { flag(inner, one); });
}

template <class Row, class Value>
void watch(Row& row, Value& value) {
  for (auto& one : value.detectors) detector(row, one);
  for (auto& peak : value.peaks) row(peak);
  for (auto& first : value.first) row.optional(first, [](auto& inner, auto& one) { flag(inner, one); });
  evidence(row, value.evidence);
  row(value.episodes);
}

}  // namespace

std::vector<double> packed(const SpikeWatch::State& state) {
  NumberRowWriter row;
  watch(row, state);
  return row.take();
}

SpikeWatch::State unpacked_spikes(std::span<const double> numbers, std::size_t rows) {
  SpikeWatch::State state;
  NumberRowReader row(numbers);
  watch(row, state);
  row.finish();

  // What the watch takes for granted.
  constexpr std::size_t quantities = 2;
  const SpikeEvidence::State& evidence = state.evidence;
  bool fits = evidence.ring.size() == SpikeEvidence::ring_steps * rows * quantities &&
              (evidence.detectors.empty() || evidence.detectors.size() == rows * quantities) && evidence.steps >= 0 &&
              evidence.steps <= static_cast<std::int64_t>(SpikeEvidence::ring_steps) &&
              evidence.steps <= evidence.last_step;
  for (const LayerFlag& one : evidence.recent) fits = fits && one.row < rows;
  for (const auto& first : state.first) fits = fits && (!first || first->row < rows);
  if (!fits) throw std::range_error("the state of another watch");
  return state;
}

}  // namespace gradflow
