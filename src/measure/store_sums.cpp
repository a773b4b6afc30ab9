#include "measure/store_sums.h"

#include <cmath>
#include <numeric>
#include <utility>

#include "core/phases.h"
#include "kernels/reductions.h"
#include "measure/readout.h"

namespace gradflow {
namespace {

using Entry = ParameterStore::Entry;

template <class T>
std::vector<double> cpu_squares(const std::vector<Entry>& entries, const T* values) {
  std::vector<double> squares(entries.size());
  for (std::size_t e = 0; e < entries.size(); ++e)
    squares[e] = sum_of_squares(values + entries[e].offset, static_cast<std::size_t>(entries[e].size));
  return squares;
}

/// Of the entries from `first` up to `last`, into `sums`.
template <class T>
void sum_cpu_gradients(const std::vector<Entry>& entries, const T* gradients, std::size_t first, std::size_t last,
                       GradientSums& sums) {
  for (std::size_t e = first; e < last; ++e) {
    const T* const own = gradients + entries[e].offset;
    const auto size = static_cast<std::size_t>(entries[e].size);
    sums.squares[e] = sum_of_squares(own, size);
    // A finite sum of squares has finite terms; only the others need a second look.
    if (!std::isfinite(sums.squares[e])) sums.nonfinite[e] = count_nonfinite(own, size);
  }
}

void sum_cpu_gradients(ParameterStore& store, std::size_t first, std::size_t last, GradientSums& sums) {
  const at::Tensor& gradients = store.gradients();
  if (gradients.scalar_type() == at::kDouble)
    sum_cpu_gradients(store.entries(), gradients.data_ptr<double>(), first, last, sums);
  else
    sum_cpu_gradients(store.entries(), gradients.data_ptr<float>(), first, last, sums);
}

GradientSums no_sums(const ParameterStore& store) {
  const std::size_t entries = store.entries().size();
  return {std::vector<double>(entries), std::vector<std::int64_t>(entries), 0};
}

GradientSums counted(GradientSums sums) {
  sums.nonfinite_total = std::accumulate(sums.nonfinite.begin(), sums.nonfinite.end(), std::int64_t{0});
  return sums;
}

}  // namespace

double root_of_sum(const std::vector<double>& squares) {
  return std::sqrt(std::accumulate(squares.begin(), squares.end(), 0.0));
}

GradientSums gradient_sums(ParameterStore& store) {
  const at::Tensor& gradients = store.gradients();
  if (stays_on_device(gradients))
    return gradient_sums_of(read_back(gradient_sums_on_device(store)).data(), store.entries().size());
  GradientSums sums = no_sums(store);
  sum_cpu_gradients(store, 0, store.entries().size(), sums);
  return counted(std::move(sums));
}

GradientsInPassing::GradientsInPassing(ParameterStore& store) : store_(store) {}

void GradientsInPassing::micro_batch(bool first, bool last) {
  first_ = first;
  last_ = last;
  // The head may add to the embedding's before its turn comes.
  if (first_) store_.zero_gradients(0);
  if (last_) sums_ = no_sums(store_);
}

void GradientsInPassing::before_backward(std::size_t index, Segment& segment) {
  if (!first_ || index == 0) return;
  const PhaseScope phase(Phase::gradient_norms);
  if (!segment.set_gradients_next()) store_.zero_gradients(index);
}

void GradientsInPassing::after_backward(std::size_t index) {
  if (!last_) return;
  const PhaseScope phase(Phase::gradient_norms);
  sum_cpu_gradients(store_, store_.first_entry(index), store_.first_entry(index + 1), sums_);
}

GradientSums GradientsInPassing::take() { return counted(std::move(sums_)); }

at::Tensor gradient_sums_on_device(ParameterStore& store) {
  const at::Tensor& gradients = store.gradients();
  return at::stack(
      {slice_squares(store, gradients), slice_sums(store, gradients.isfinite().logical_not().to(at::kDouble))});
}

GradientSums gradient_sums_of(const double* numbers, std::size_t entries) {
  const double* const bad = numbers + entries;
  return counted({{numbers, bad}, {bad, bad + entries}, 0});
}

std::vector<double> entry_squares(const ParameterStore& store, const at::Tensor& flat) {
  if (stays_on_device(flat)) return read_back(slice_squares(store, flat));
  return flat.scalar_type() == at::kDouble ? cpu_squares(store.entries(), flat.data_ptr<double>())
                                           : cpu_squares(store.entries(), flat.data_ptr<float>());
}

at::Tensor slice_sums(const ParameterStore& store, const at::Tensor& per_element) {
  // A slice with the gap behind it is one segment. "Unsafe" leaves out a check of the lengths that would read two
  // numbers from the device.
  return at::segment_reduce(per_element, "sum", store.slice_lengths(), /*indices=*/{}, /*offsets=*/{}, /*axis=*/0,
                            /*unsafe=*/true);
}

at::Tensor slice_squares(const ParameterStore& store, const at::Tensor& flat) {
  return slice_sums(store, flat.to(at::kDouble).square());
}

std::vector<double> per_segment(const ParameterStore& store, const std::vector<double>& per_entry) {
  std::vector<double> sums(store.segment_count());
  for (std::size_t e = 0; e < per_entry.size(); ++e) sums[store.entries()[e].segment] += per_entry[e];
  return sums;
}

}  // namespace gradflow
