#include "measure/store_sums.h"

#include <cmath>
#include <numeric>

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

}  // namespace

double root_of_sum(const std::vector<double>& squares) {
  return std::sqrt(std::accumulate(squares.begin(), squares.end(), 0.0));
}

GradientSums gradient_sums(ParameterStore& store) {
  const at::Tensor& gradients = store.gradients();
  GradientSums sums;
  if (gradients.is_cpu()) {
    sums = gradients.scalar_type() == at::kDouble ? cpu_gradient_sums(store.entries(), gradients.data_ptr<double>())
                                                  : cpu_gradient_sums(store.entries(), gradients.data_ptr<float>());
  } else {
    const std::vector<double> bad = slice_sums(store, (~gradients.isfinite()).to(at::kDouble));
    sums = {entry_squares(store, gradients), {bad.begin(), bad.end()}, 0};
  }
  sums.nonfinite_total = std::accumulate(sums.nonfinite.begin(), sums.nonfinite.end(), std::int64_t{0});
  return sums;
}

std::vector<double> entry_squares(const ParameterStore& store, const at::Tensor& flat) {
  if (!flat.is_cpu()) return slice_sums(store, flat.to(at::kDouble).square());
  return flat.scalar_type() == at::kDouble ? cpu_squares(store.entries(), flat.data_ptr<double>())
                                           : cpu_squares(store.entries(), flat.data_ptr<float>());
}

std::vector<double> slice_sums(const ParameterStore& store, const at::Tensor& per_element) {
  // A slice with the gap behind it is one segment of the reduction.
  const std::vector<Entry>& entries = store.entries();
  std::vector<std::int64_t> lengths(entries.size());
  for (std::size_t e = 0; e < entries.size(); ++e)
    lengths[e] = (e + 1 < entries.size() ? entries[e + 1].offset : per_element.size(0)) - entries[e].offset;
  const at::Tensor lengths_tensor = at::tensor(lengths, at::kLong).to(per_element.device());
  const at::Tensor sums = at::segment_reduce(per_element, "sum", lengths_tensor).to(at::kCPU);
  return {sums.data_ptr<double>(), sums.data_ptr<double>() + sums.numel()};
}

std::vector<double> per_segment(const ParameterStore& store, const std::vector<double>& per_entry) {
  std::vector<double> sums(store.segment_count());
  for (std::size_t e = 0; e < per_entry.size(); ++e) sums[store.entries()[e].segment] += per_entry[e];
  return sums;
}

}  // namespace gradflow
