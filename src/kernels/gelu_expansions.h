#pragma once

#include <array>
#include <cstddef>

namespace gradflow {

constexpr std::size_t gelu_terms = 6;
constexpr std::size_t gelu_centres = 32;
constexpr float gelu_centres_per_unit = 5.25f;
constexpr float gelu_last_centre = 31;

/// Of Φ, the distribution function of the normal distribution, around the centres x = i/gelu_centres_per_unit:
/// Φ((i + r)/gelu_centres_per_unit) − ½ = Σ_k c[k][i]·r^k for |r| ≤ ½, to 1e-8. Around the last centre, beyond which
/// Φ is 1 to 3e-9, the constant ½.
using GeluExpansions = std::array<std::array<float, gelu_centres>, gelu_terms>;
const GeluExpansions& gelu_expansions();

}  // namespace gradflow
