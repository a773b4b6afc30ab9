#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"

namespace gradflow {

/// What theory says of a number: an interval, or one value (low = high).
struct Band {
  double low = 0;
  double high = 0;
};

/// The standard deviation of a parameter's initial elements, by its canonical name ("block.3.ffn.in.weight"): such that
/// E‖Wz‖² = out·std²·‖z‖² for W [out, in].
using InitialStd = std::function<double(const std::string& parameter)>;

/// The expected root mean squares of one sub-layer at initialization; absent: no closed form.
struct ScalePrediction {
  std::int64_t layer = 0;
  std::string sublayer;
  std::optional<Band> norm_input_rms, stream_rms, branch_rms, dual_rms;

  /// By the name of the column.
  std::optional<Band> of(std::string_view column) const;
};

/// The scale of stream and branch over depth at initialization, sub-layer by sub-layer, from E[x²] of the stream that
/// enters the first block. In the setting of Xiong et al. 2020, lemma 2, it is their result: Pre-LN between 1 + l/2 and
/// 1 + 3l/2, Post-LN 3/2 before the norm of the feed-forward. The same steps give the others: without norm (1 + g) a
/// sub-layer with branch gain g, a harmonic sum for LNS, 1 for ReZero, a constant for (x + F)/√2 with g = 1.
///
/// What is used: the last matrix of a branch has mean zero and is independent of the rest, so squares of skip and
/// branch add; attention averages the values, so it keeps between nothing and all of their square; half of a symmetric
/// variable's square passes ReLU; layernorm and rmsnorm put out a mean square of 1 (their ε counted in). Expectations
/// over weights: means over seeds follow them, a single seed scatters about them.
///
/// No closed form where a norm is of another kind, gates depend on the stream (highway, gate_literal), an activation is
/// neither ReLU nor identity and no norm fixes what enters it, for `sinusoid`, and for resnets (their borders).
std::vector<ScalePrediction> predicted_scales(const Config& config, double input_square, const InitialStd& initial_std);

}  // namespace gradflow
