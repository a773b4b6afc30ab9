#pragma once

#include <array>
#include <cstddef>

namespace gradflow {

constexpr std::size_t gelu_terms = 6;
constexpr std::size_t gelu_centres = 32;
constexpr float gelu_centres_per_unit = 5.25f;
constexpr float gelu_last_centre = gelu_centres - 1;

/// Of Φ, the distribution function of the normal distribution, around the centres x = i/gelu_centres_per_unit:
/// Φ((i + r)/gelu_centres_per_unit) − ½ = Σ_k c[k][i]·r^k for |r| ≤ ½ to 1.5e-8, and its derivative as well as float32
/// can use it. Around the last centre, from x = 5.81 on, the constant ½: 1 − Φ is at most 3.2e-9 there, x·φ 1.1e-7.
using GeluExpansions = std::array<std::array<float, gelu_centres>, gelu_terms>;
const GeluExpansions& gelu_expansions();

}  // namespace gradflow
