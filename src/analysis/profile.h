#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/seed_mean.h"

namespace gradflow {

// Depth profiles: how a quantity q_l changes over the blocks l = 1…N.

/// Which way the quantity flows. Distance counts from where it starts: gradients from the output down (N − l + 1),
/// activations from the input up (l).
enum class Flow { gradient, activation };

enum class ProfileForm { exponential, power };
std::string_view name_of(ProfileForm form);

/// The profile of one seed.
struct ProfileFit {
  std::int64_t left_out = 0;           ///< blocks whose value is zero or negative
  std::int64_t not_finite = 0;         ///< blocks whose value is nan or infinite: with one of them there is no line
  std::optional<LineFit> exponential;  ///< ln q on distance: the slope is a rate per block
  std::optional<LineFit> power;        ///< ln q on ln distance: the slope is an exponent
  std::optional<double> ratio;         ///< q_1/q_N; absent when one is not finite or q_N is zero

  /// The form with the smaller residual sum of squares; absent when both lines meet every point (two blocks, a
  /// constant).
  std::optional<ProfileForm> better() const;
};

/// Fits the values of blocks 1…N. Values that have no logarithm are left out and counted; a line needs two. Where the
/// stack has overflowed there is none: a line through the blocks that were finite yet says nothing of the stack.
ProfileFit fit_profile(std::span<const double> values, Flow flow);

/// How much changes over the whole stack, R = rate·N, judged by its 95 % interval over seeds.
enum class ProfileVerdict {
  undecided,        ///< fewer than three seeds
  flat,             ///< the interval holds 0
  falling,          ///< below 0
  rising,           ///< above 0
  tenfold_falling,  ///< below −ln 10: vanishing gradients, shrinking activations
  tenfold_rising,   ///< above ln 10: exploding gradients, growing activations
  not_finite,       ///< no seed has a fit, and one at least since its blocks are not all finite
};
/// The word for it: gradients `vanishing`, `exploding`; activations `shrinking`, `growing`; both `falling`, `rising`,
/// `flat`, `undecided`, `not finite`.
std::string_view name_of(ProfileVerdict verdict, Flow flow);

/// The verdict of rates per block, one a seed that has a fit, of stacks of so many blocks; `not_finite` seeds have none
/// for that reason.
ProfileVerdict profile_verdict(std::span<const double> rates, std::int64_t blocks, std::int64_t not_finite = 0);

/// The profile over seeds.
struct DepthProfile {
  std::int64_t seeds = 0;       ///< that have a fit
  std::int64_t not_finite = 0;  ///< seeds without one, since some of their blocks are not finite
  std::int64_t left_out = 0;    ///< values that are zero or negative, over all seeds
  SeedMean rate;
  SeedMean exponent;
  SeedMean ratio;
  std::optional<ProfileForm> better;  ///< by the residuals of all seeds together
  ProfileVerdict verdict = ProfileVerdict::undecided;
};

/// One profile q_1…q_N a seed. Throws std::logic_error when their lengths differ.
DepthProfile depth_profile(std::span<const std::vector<double>> seeds, Flow flow);

}  // namespace gradflow
