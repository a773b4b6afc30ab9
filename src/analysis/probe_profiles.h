#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/predictions.h"
#include "analysis/profile.h"

namespace gradflow {

// What `probe` makes of its numbers: profiles over the blocks of each stack, and their change with the depth of stacks.

/// What the stacks of a probe differ in besides depth and seed, as the configuration has the words.
struct ProbeKind {
  std::string placement, norm, residual, initialization;
  bool operator==(const ProbeKind&) const = default;
};

/// One number of one stack.
struct ProbeValue {
  std::int64_t seed = 0;
  std::optional<std::int64_t> layer;  ///< absent: of the whole stack
  std::string sublayer;               ///< empty: of the block or the whole stack
  std::string quantity;
  double value = 0;
  std::optional<Band> predicted;
};

/// The stacks of one kind and depth, one a seed.
struct ProbeCell {
  ProbeKind kind;
  std::int64_t depth = 0;
  std::vector<ProbeValue> values;  ///< by seed, then as measured
};

/// Which way a quantity flows: gradients from the output down, everything else from the input up.
Flow flow_of(std::string_view quantity);

/// A number at one place over seeds: a row of means.csv.
struct ProbeMean {
  std::optional<std::int64_t> layer;
  std::string sublayer, quantity;
  std::int64_t seeds = 0;
  SeedMean over_seeds;
  std::optional<Band> predicted;  ///< the mean of the seeds' bands
};

/// In the order in which the values of the first seed stand.
std::vector<ProbeMean> probe_means(const ProbeCell& cell);

/// Whether a prediction and what was measured agree: the band, widened by a relative 1e-6 for rounding, meets the
/// interval over seeds (the mean, where there is one seed).
bool agrees(const ProbeMean& mean);

/// A quantity along the blocks of the stacks of one cell. A block's value is the root of the sum of squares of its
/// sub-layers for grad_norm and weight_norm, else that of its last sub-layer that has one.
struct ProbeProfile {
  std::string quantity;
  SeedMean first, last;                          ///< of block 1 and block N
  std::vector<SeedMean> blocks;                  ///< of blocks 1…N
  std::vector<std::optional<Band>> predictions;  ///< of blocks 1…N
  std::optional<Band> predicted_rate;            ///< of the fits through the predictions, where each block has one
  DepthProfile profile;
  std::int64_t predicted_places = 0;  ///< sub-layers with a prediction
  std::int64_t agreeing_places = 0;   ///< of these, where it agrees with the mean over seeds
};

/// Every quantity that each block has a value of.
std::vector<ProbeProfile> probe_profiles(const ProbeCell& cell);

/// How a quantity changes with the number of blocks N, over the stacks of one kind: exponents of N, one a seed.
struct DepthExponents {
  ProbeKind kind;
  std::string quantity;
  std::vector<std::int64_t> depths;  ///< that entered: below 8 no asymptote shows
  SeedMean last;                     ///< of the last block's value
  SeedMean ratio;                    ///< of first/last block
};

inline constexpr std::int64_t least_asymptotic_depth = 8;

/// For each kind that was probed at two or more depths of at least 8; a quantity with a value that has no logarithm is
/// left out.
std::vector<DepthExponents> depth_exponents(std::span<const ProbeCell> cells);

}  // namespace gradflow
