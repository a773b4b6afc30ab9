#pragma once

#include <span>

namespace gradflow {

/// −Σ p ln p in nats of the distribution whose probabilities are proportional to `weights` (not negative, not all
/// zero).
double entropy(std::span<const double> weights);

}  // namespace gradflow
