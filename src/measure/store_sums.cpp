#include "measure/store_sums.h"

#include <cmath>
#include <numeric>

#include "measure/readout.h"
#include "measure/reductions.h"

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

template <class T>
GradientSums cpu_gradient_sums(const std::vector<Entry>& entries, const T* gradients) {
  GradientSums sums{cpu_squares(entries, gradients), std::vector<std::int64_t>(entries.size()), 0};
  for (std::size_t e = 0; e < entries.size(); ++e)
    // A finite sum of squares has finite terms; only the others need a second look.
    if (!std::isfinite(sums.squares[e]))
      sums.nonfinite[e] = count_nonfinite(gradients + entries[e].offset, static_cast<std::size_t>(entries[e].size));
  return sums;
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
  return counted(gradients.scalar_type() == at::kDouble
                     ? cpu_gradient_sums(store.entries(), gradients.data_ptr<double>())
                     : cpu_gradient_sums(store.entries(), gradients.data_ptr<float>()));
}

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
