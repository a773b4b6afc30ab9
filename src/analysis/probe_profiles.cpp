#include "analysis/probe_profiles.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "core/statistics.h"

namespace gradflow {
namespace {

/// The values of blocks 1…N of one quantity, for each seed that has them all.
struct BlockValues {
  std::string quantity;
  std::map<std::int64_t, std::vector<double>> seeds;
};

bool is_norm_of_parameters(std::string_view quantity) { return quantity == "grad_norm" || quantity == "weight_norm"; }

std::vector<BlockValues> block_values(const ProbeCell& cell) {
  const auto depth = static_cast<std::size_t>(cell.depth);
  struct Collected {
    std::vector<double> values;
    std::vector<bool> found;
  };
  std::vector<std::string> order;
  std::map<std::string, std::map<std::int64_t, Collected>> collected;
  for (const ProbeValue& value : cell.values) {
    if (!value.layer || *value.layer < 1 || *value.layer > cell.depth) continue;
    if (!collected.contains(value.quantity)) order.push_back(value.quantity);
    Collected& seed = collected[value.quantity][value.seed];
    seed.values.resize(depth);
    seed.found.resize(depth);
    const auto block = static_cast<std::size_t>(*value.layer - 1);
    seed.values[block] =
        is_norm_of_parameters(value.quantity) ? std::hypot(seed.values[block], value.value) : value.value;
    seed.found[block] = true;
  }
  std::vector<BlockValues> quantities;
  for (const std::string& quantity : order) {
    BlockValues blocks{quantity, {}};
    for (auto& [seed, of_seed] : collected[quantity])
      if (std::all_of(of_seed.found.begin(), of_seed.found.end(), [](bool found) { return found; }))
        blocks.seeds[seed] = std::move(of_seed.values);
    if (!blocks.seeds.empty()) quantities.push_back(std::move(blocks));
  }
  return quantities;
}

bool has_logarithm(double value) { return value > 0 && std::isfinite(value); }

/// The exponent of N in values that belong to depths; absent when one has no logarithm.
std::optional<double> exponent(std::span<const double> log_depths, std::span<const double> values) {
  std::vector<double> log_values;
  for (const double value : values) {
    if (!has_logarithm(value)) return std::nullopt;
    log_values.push_back(std::log(value));
  }
  const std::optional<LineFit> fit = fit_line(log_depths, log_values);
  return fit ? std::optional(fit->slope) : std::nullopt;
}

/// What the closed forms give for blocks 1…N, at the sub-layer whose value is the block's.
std::vector<std::optional<Band>> block_predictions(std::span<const ProbeMean> means, const std::string& quantity,
                                                   std::int64_t depth) {
  std::vector<std::optional<Band>> predictions(static_cast<std::size_t>(depth));
  if (is_norm_of_parameters(quantity)) return predictions;
  for (const ProbeMean& mean : means)
    if (mean.quantity == quantity && mean.layer && *mean.layer >= 1 && *mean.layer <= depth)
      predictions[static_cast<std::size_t>(*mean.layer - 1)] = mean.predicted;
  return predictions;
}

/// The rates per block of the lower and of the upper ends of the predictions; absent where a block has none.
std::optional<Band> rates_of(std::span<const std::optional<Band>> predictions, Flow flow) {
  std::vector<double> lows, highs;
  for (const std::optional<Band>& band : predictions) {
    if (!band) return std::nullopt;
    lows.push_back(band->low);
    highs.push_back(band->high);
  }
  const std::optional<LineFit> of_lows = fit_profile(lows, flow).exponential,
                               of_highs = fit_profile(highs, flow).exponential;
  if (!of_lows || !of_highs) return std::nullopt;
  return Band{std::min(of_lows->slope, of_highs->slope), std::max(of_lows->slope, of_highs->slope)};
}

}  // namespace

Flow flow_of(std::string_view quantity) {
  return quantity == "grad_norm" || quantity == "stream_grad_norm" || quantity == "dual_grad_norm" ? Flow::gradient
                                                                                                   : Flow::activation;
}

std::vector<ProbeMean> probe_means(const ProbeCell& cell) {
  struct Collected {
    std::vector<double> values, lows, highs;
  };
  std::vector<ProbeMean> means;
  std::vector<Collected> collected;
  std::map<std::tuple<std::optional<std::int64_t>, std::string, std::string>, std::size_t> places;
  for (const ProbeValue& value : cell.values) {
    const auto [place, is_new] = places.try_emplace({value.layer, value.sublayer, value.quantity}, means.size());
    if (is_new) {
      means.push_back({value.layer, value.sublayer, value.quantity, 0, {}, {}});
      collected.emplace_back();
    }
    Collected& numbers = collected[place->second];
    numbers.values.push_back(value.value);
    if (value.predicted) {
      numbers.lows.push_back(value.predicted->low);
      numbers.highs.push_back(value.predicted->high);
    }
  }
  for (std::size_t i = 0; i < means.size(); ++i) {
    const Collected& numbers = collected[i];
    means[i].seeds = static_cast<std::int64_t>(numbers.values.size());
    means[i].over_seeds = mean_over_seeds(numbers.values);
    if (!numbers.lows.empty() && numbers.lows.size() == numbers.values.size())
      means[i].predicted = Band{*mean(numbers.lows), *mean(numbers.highs)};
  }
  return means;
}

bool agrees(const ProbeMean& mean) {
  if (!mean.predicted || !mean.over_seeds.mean) return false;
  constexpr double rounding = 1e-6;
  const auto& interval = mean.over_seeds.interval;
  const double low = interval ? interval->low : *mean.over_seeds.mean;
  const double high = interval ? interval->high : *mean.over_seeds.mean;
  return low <= mean.predicted->high * (1 + rounding) && high >= mean.predicted->low * (1 - rounding);
}

std::vector<ProbeProfile> probe_profiles(const ProbeCell& cell) {
  const std::vector<ProbeMean> means = probe_means(cell);
  std::vector<ProbeProfile> profiles;
  for (const BlockValues& blocks : block_values(cell)) {
    ProbeProfile profile{.quantity = blocks.quantity};
    std::vector<double> first, last;
    std::vector<std::vector<double>> seeds;
    for (const auto& [seed, values] : blocks.seeds) {
      first.push_back(values.front());
      last.push_back(values.back());
      seeds.push_back(values);
    }
    profile.first = mean_over_seeds(first);
    profile.last = mean_over_seeds(last);
    for (std::size_t block = 0; block < static_cast<std::size_t>(cell.depth); ++block) {
      std::vector<double> values;
      for (const std::vector<double>& of_seed : seeds) values.push_back(of_seed[block]);
      profile.blocks.push_back(mean_over_seeds(values));
    }
    const Flow flow = flow_of(blocks.quantity);
    profile.predictions = block_predictions(means, blocks.quantity, cell.depth);
    profile.predicted_rate = rates_of(profile.predictions, flow);
    profile.profile = depth_profile(seeds, flow);
    for (const ProbeMean& mean : means) {
      if (mean.quantity != blocks.quantity || !mean.predicted) continue;
      ++profile.predicted_places;
      if (agrees(mean)) ++profile.agreeing_places;
    }
    profiles.push_back(std::move(profile));
  }
  return profiles;
}

std::vector<DepthExponents> depth_exponents(std::span<const ProbeCell> cells) {
  std::vector<DepthExponents> all;
  std::vector<ProbeKind> kinds;
  for (const ProbeCell& cell : cells)
    if (std::find(kinds.begin(), kinds.end(), cell.kind) == kinds.end()) kinds.push_back(cell.kind);
  for (const ProbeKind& kind : kinds) {
    // quantity → seed → values of the last block, and first/last, in the order of `depths`.
    struct Series {
      std::vector<double> last, ratio;
    };
    std::vector<std::int64_t> depths;
    std::vector<double> log_depths;
    std::vector<std::string> order;
    std::map<std::string, std::map<std::int64_t, Series>> series;
    for (const ProbeCell& cell : cells) {
      if (cell.kind != kind || cell.depth < least_asymptotic_depth) continue;
      depths.push_back(cell.depth);
      log_depths.push_back(std::log(static_cast<double>(cell.depth)));
      for (const BlockValues& blocks : block_values(cell)) {
        if (!series.contains(blocks.quantity)) order.push_back(blocks.quantity);
        for (const auto& [seed, values] : blocks.seeds) {
          Series& of_seed = series[blocks.quantity][seed];
          of_seed.last.push_back(values.back());
          of_seed.ratio.push_back(values.front() / values.back());
        }
      }
    }
    if (depths.size() < 2) continue;
    for (const std::string& quantity : order) {
      std::vector<double> last, ratio;
      for (const auto& [seed, of_seed] : series[quantity]) {
        if (of_seed.last.size() != depths.size()) continue;
        if (const auto slope = exponent(log_depths, of_seed.last)) last.push_back(*slope);
        if (const auto slope = exponent(log_depths, of_seed.ratio)) ratio.push_back(*slope);
      }
      if (!last.empty()) all.push_back({kind, quantity, depths, mean_over_seeds(last), mean_over_seeds(ratio)});
    }
  }
  return all;
}

}  // namespace gradflow
