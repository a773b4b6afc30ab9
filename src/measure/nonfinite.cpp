#include "measure/nonfinite.h"

namespace gradflow {

void FiniteWatcher::forward_done(std::size_t segment, const Stream&, const Stream& output, const Inside&,
                                 const Batch&) {
  if (!output.x.isfinite().all().item<bool>()) finite_[segment] = false;
}

NonfiniteFinding first_nonfinite(Stack& stack, const GradientSums& gradients, const std::vector<bool>& finite) {
  const std::vector<ParameterStore::Entry>& entries = stack.store().entries();
  const auto finding = [&](std::string tensor, std::size_t segment) {
    const SegmentSpec& spec = stack.layout().segments[segment];
    return NonfiniteFinding{std::move(tensor), spec.layer, spec.sublayer, finite[segment]};
  };
  for (std::size_t e = entries.size(); e-- > 0;)
    if (gradients.nonfinite[e] > 0) return finding(entries[e].name, entries[e].segment);
  return finding("loss", stack.segment_count() - 1);
}

}  // namespace gradflow
