#include "measure/nonfinite.h"

#include <cmath>
#include <utility>

namespace gradflow {

void FiniteWatcher::forward_done(std::size_t segment, const Stream&, const Stream& output, const Inside&,
                                 const Batch&) {
  if (!output.x.isfinite().all().item<bool>()) finite_[segment] = false;
}

NonfiniteFinding first_nonfinite(Stack& stack, const GradientSums& gradients, const std::vector<bool>& finite) {
  const std::vector<ParameterStore::Entry>& entries = stack.store().entries();
  const auto finding = [&](NonfiniteFinding::Kind kind, std::string tensor, std::size_t segment) {
    const SegmentSpec& spec = stack.layout().segments[segment];
    return NonfiniteFinding{kind, std::move(tensor), spec.layer, spec.sublayer, finite[segment]};
  };
  const auto is_bad = [&](std::size_t e) { return gradients.nonfinite[e] > 0; };
  // A head without a matrix of its own uses the embedding's, which the backward pass meets first.
  const bool tied = stack.layout().segments.back().parameters.empty();
  if (tied && is_bad(0)) return finding(NonfiniteFinding::Kind::gradient, entries[0].name, stack.segment_count() - 1);
  for (std::size_t e = entries.size(); e-- > 0;)
    if (is_bad(e)) return finding(NonfiniteFinding::Kind::gradient, entries[e].name, entries[e].segment);
  return finding(NonfiniteFinding::Kind::loss, "", stack.segment_count() - 1);
}

NonfiniteFinding first_overflow(Stack& stack, const std::vector<double>& after_squares) {
  const std::vector<ParameterStore::Entry>& entries = stack.store().entries();
  std::size_t e = entries.size() - 1;
  while (e > 0 && std::isfinite(after_squares[e])) --e;
  const SegmentSpec& spec = stack.layout().segments[entries[e].segment];
  return {NonfiniteFinding::Kind::update, entries[e].name, spec.layer, spec.sublayer, true};
}

}  // namespace gradflow
