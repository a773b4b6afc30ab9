// Real stacks at initialization against the closed forms.

#include "train/probe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "config/placements.h"
#include "config/resolved.h"
#include "core/statistics.h"
#include "data/source.h"
#include "testing/training.h"

namespace gradflow {
namespace {

struct Place {
  std::int64_t layer;
  std::string sublayer, quantity;
  auto operator<=>(const Place&) const = default;
};

/// x² of each seed at a place with a prediction, and the mean prediction of it.
struct Expectation {
  std::vector<double> squares;
  double low = 0, high = 0;

  double square() const { return *mean(squares); }
  /// Of the mean over seeds.
  double standard_error() const { return *sample_std(squares) / std::sqrt(static_cast<double>(squares.size())); }
};

std::map<Place, Expectation> over_seeds(Config config, std::int64_t seeds) {
  config.record.quantities = {"stream_rms", "norm_input_rms", "branch_rms", "dual_rms"};
  std::map<Place, Expectation> places;
  for (config.seed = 1; config.seed <= seeds; ++config.seed) {
    const std::vector<Batch> batches{make_source(config)->training_batch(1, 0)};
    for (const ProbedNumber& number : probe_stack(config, batches, {}, at::kCPU)) {
      if (!number.predicted) continue;
      Expectation& place = places[{number.layer.value(), number.sublayer, std::string(number.quantity)}];
      const auto count = static_cast<double>(seeds);
      place.squares.push_back(number.value * number.value);
      place.low += number.predicted->low * number.predicted->low / count;
      place.high += number.predicted->high * number.predicted->high / count;
    }
  }
  return places;
}

Config wide() {
  Config config;
  config.model.depth = 4;
  config.model.width = 128;
  config.model.heads = 4;
  config.model.activation = Activation::relu;
  config.data.task = Task::random;
  config.data.context = 32;
  config.train.batch = 8;
  return config;
}

constexpr int seeds_of_a_mean = 24;

/// The mean over the seeds lies in the band, but for five of its standard errors (23 degrees of freedom) and 1 %, for
/// widths are finite. `most_scatter` bounds the standard error, so that a band cannot be met by scatter alone.
void expect_predicted(const Config& config, std::size_t least_places, double most_scatter) {
  const auto places = over_seeds(resolved(config), seeds_of_a_mean);
  EXPECT_GE(places.size(), least_places);
  for (const auto& [place, expectation] : places) {
    const double square = expectation.square(), slack = 5 * expectation.standard_error() + 0.01 * square;
    EXPECT_LE(expectation.standard_error(), most_scatter * square) << place.layer << place.sublayer << place.quantity;
    EXPECT_GE(square, expectation.low - slack) << place.layer << place.sublayer << place.quantity;
    EXPECT_LE(square, expectation.high + slack) << place.layer << place.sublayer << place.quantity;
  }
}

TEST(Probe, EveryPlacementFollowsItsClosedForm) {
  for (const PlacementRow& row : placement_rows()) {
    SCOPED_TRACE(name_of(row.placement));
    Config config = wide();
    config.model.placement = row.placement;
    expect_predicted(config, 16, row.placement == Placement::none ? 0.06 : 0.03);
  }
}

TEST(Probe, ResidualFormsFollowTheirs) {
  for (const Residual residual :
       {Residual::scaled, Residual::rezero, Residual::sqrt2, Residual::layerscale, Residual::concat}) {
    SCOPED_TRACE(name_of(residual));
    Config config = wide();
    config.model.residual = residual;
    expect_predicted(config, 24, 0.03);
    config.model.norm = Norm::none;
    config.model.placement = Placement::none;
    expect_predicted(config, 16, 0.06);
  }
}

TEST(Probe, InitializationsEnterTheClosedForm) {
  for (const Initialization initialization :
       {Initialization::xavier_uniform, Initialization::he_normal, Initialization::gpt2, Initialization::orthogonal,
        Initialization::ds_init, Initialization::t_fixup, Initialization::mitchell}) {
    SCOPED_TRACE(name_of(initialization));
    Config config = wide();
    config.model.initialization = initialization;
    config.model.activation = Activation::gelu;
    expect_predicted(config, 24, 0.03);
  }
}

/// Lemma 2 of Xiong et al. 2020 in its setting, with uniform attention.
TEST(Probe, Lemma2HoldsInItsSetting) {
  Config config = wide();
  config.model.heads = 1;
  config.model.ffn_width = 128;
  config.model.query_key_init_scale = 0;
  const auto pre = over_seeds(resolved(config), seeds_of_a_mean);
  for (std::int64_t l = 1; l <= 4; ++l) {
    const Expectation& stream = pre.at({l, "ffn", "stream_rms"});
    const auto blocks = static_cast<double>(l);
    // The embedding puts out 1 on average: √½ each for tokens and positions.
    EXPECT_NEAR(stream.low, 1 + blocks / 2, 0.05 * stream.low);
    EXPECT_NEAR(stream.high, 1 + 3 * blocks / 2, 0.05 * stream.high);
    EXPECT_GT(stream.square(), 1 + blocks / 2);
    EXPECT_LT(stream.square(), 1 + 3 * blocks / 2);
  }
  config.model.placement = Placement::post;
  const auto post = over_seeds(resolved(config), seeds_of_a_mean);
  for (std::int64_t l = 1; l <= 4; ++l) {
    const Expectation& input = post.at({l, "ffn", "norm_input_rms"});
    EXPECT_LT(input.standard_error(), 0.04);
    EXPECT_NEAR(input.square(), 1.5, 4 * input.standard_error() + 0.01);
  }
}

TEST(Probe, APlainNetOfHeKeepsItsSize) {
  Config config;
  config.model.stack = StackKind::mlp;
  config.model.norm = Norm::none;
  config.model.activation = Activation::relu;
  config.model.initialization = Initialization::he_normal;
  config.model.depth = 6;
  config.model.width = 256;
  config.data.task = Task::teacher;
  config.train.batch = 64;
  for (const Residual residual : {Residual::add, Residual::sqrt2, Residual::none, Residual::rezero}) {
    SCOPED_TRACE(name_of(residual));
    config.model.residual = residual;
    expect_predicted(config, 6, 0.15);
  }
}

TEST(Probe, ShowsWhatTheFirstStepOfARunShows) {
  Config config = testing::tiny_config();
  config.train.steps = 1;
  config.train.accumulation = 2;
  config.record.quantities = {"all"};
  const auto source = make_source(config);
  const std::vector<Batch> batches{source->training_batch(1, 0), source->training_batch(1, 1)};
  const std::vector<ProbedNumber> numbers = probe_stack(config, batches, {}, at::kCPU);
  const testing::TrainedRun run = testing::train(config);
  double squares = 0;
  for (const ProbedNumber& number : numbers)
    if (number.quantity == "grad_norm") squares += number.value * number.value;
  EXPECT_DOUBLE_EQ(std::sqrt(squares), run.steps[0].grad_norm);
  const auto count = [&](std::string_view quantity) {
    return std::count_if(numbers.begin(), numbers.end(), [&](const auto& n) { return n.quantity == quantity; });
  };
  EXPECT_EQ(count("grad_norm"), 7);
  EXPECT_EQ(count("attention_entropy"), 2);
  EXPECT_EQ(count("update_norm"), 0);  // nothing is updated
}

}  // namespace
}  // namespace gradflow
