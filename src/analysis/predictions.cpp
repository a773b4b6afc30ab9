#include "analysis/predictions.h"

#include <cmath>
#include <numbers>
#include <utility>

#include "config/derived.h"
#include "config/placements.h"

namespace gradflow {
namespace {

/// A mean square that is known within a band, or not at all.
using Square = std::optional<Band>;

Square times(const Square& square, double factor) {
  return square ? Square(Band{square->low * factor, square->high * factor}) : std::nullopt;
}

Square plus(const Square& a, const Square& b) {
  return a && b ? Square(Band{a->low + b->low, a->high + b->high}) : std::nullopt;
}

std::optional<Band> root(const Square& square) {
  return square ? Square(Band{std::sqrt(square->low), std::sqrt(square->high)}) : std::nullopt;
}

double square_of(double x) { return x * x; }

/// What multiplies the squares of skip and branch in a residual form.
struct SquareFactors {
  double skip = 1;
  double branch = 1;
};

std::optional<SquareFactors> factors_of(const ModelConfig& model) {
  switch (model.residual) {
    case Residual::add:
    case Residual::concat: return SquareFactors{};  // concat starts as the plain sum
    case Residual::none: return SquareFactors{0, 1};
    case Residual::scaled:
    case Residual::rezero:
    case Residual::layerscale: return SquareFactors{1, square_of(model.residual_gate.value_or(1))};
    case Residual::sqrt2: return SquareFactors{0.5, 0.5};
    case Residual::highway:
    case Residual::gate_literal: return std::nullopt;
  }
  return std::nullopt;
}

/// E[act(s·g)²] for a standard normal g, by Simpson's rule.
double gaussian_square(Activation activation, double s) {
  constexpr int intervals = 400;
  constexpr double reach = 10, width = 2 * reach / intervals;
  const auto term = [&](double g) {
    const double z = s * g;
    const double y = activation == Activation::gelu ? z * 0.5 * std::erfc(-z / std::numbers::sqrt2) : std::tanh(z);
    return y * y * std::exp(-0.5 * g * g);
  };
  double sum = term(-reach) + term(reach);
  for (int i = 1; i < intervals; ++i) sum += (i % 2 == 1 ? 4 : 2) * term(-reach + i * width);
  return sum * width / 3 / std::sqrt(2 * std::numbers::pi);
}

/// Walks up the blocks with E[x²] in hand.
class Walk {
 public:
  Walk(const Config& config, double input_square, const InitialStd& initial_std)
      : model_(config.model),
        initial_std_(initial_std),
        normalizes_(model_.norm == Norm::layernorm || model_.norm == Norm::rmsnorm),
        stream_(Band{input_square, input_square}),
        second_(stream_) {}

  std::vector<ScalePrediction> transformer() {
    std::vector<ScalePrediction> predictions;
    for (std::int64_t block = 1; block <= model_.depth; ++block) {
      predictions.push_back(sub_layer(block, SubLayerKind::attention));
      predictions.push_back(sub_layer(block, SubLayerKind::ffn));
    }
    return predictions;
  }

  std::vector<ScalePrediction> mlp() {
    std::vector<ScalePrediction> predictions;
    for (std::int64_t block = 1; block <= model_.depth; ++block) predictions.push_back(dense(block));
    return predictions;
  }

 private:
  /// The mean square behind a site of the norm.
  Square normed(bool site, const Square& square) const {
    if (!site || model_.norm == Norm::none) return square;
    if (!normalizes_ || !square) return std::nullopt;
    return Band{square->low / (square->low + model_.norm_epsilon), square->high / (square->high + model_.norm_epsilon)};
  }

  /// The mean square behind a matrix.
  Square through(const std::string& matrix, double inputs, const Square& square) const {
    return times(square, inputs * square_of(initial_std_(matrix + ".weight")));
  }

  /// The mean square behind the activation of symmetric values; `even`: every token has the same, normal ones.
  Square activated(const Square& square, bool even) const {
    switch (model_.activation) {
      case Activation::identity: return square;
      case Activation::relu: return times(square, 0.5);
      case Activation::gelu:
      case Activation::tanh:
        if (!even || !square) return std::nullopt;
        return Band{gaussian_square(model_.activation, std::sqrt(square->low)),
                    gaussian_square(model_.activation, std::sqrt(square->high))};
    }
    return std::nullopt;
  }

  Square attention(const SubLayerPlan& plan, const std::string& prefix, const Square& z) const {
    const auto width = static_cast<double>(model_.width);
    Square values = normed(plan.norm_query_key_value, through(prefix + ".v", width, z));
    if (values) values->low = 0;  // a mean of many values that are not alike is small, of equal ones it is as they are
    // A norm makes whatever is left of them 1.
    if (plan.inner_norm && normalizes_) values = Band{1, 1};
    return through(prefix + ".out", width, values);
  }

  Square feed_forward(const SubLayerPlan& plan, const std::string& prefix, const Square& z) const {
    const bool even = plan.norm_in && normalizes_;
    const Square before = through(prefix + ".in", static_cast<double>(model_.width), z);
    Square hidden = activated(before, even);
    if (plan.inner_norm && normalizes_) hidden = Band{1, 1};
    return through(prefix + ".out", static_cast<double>(model_.ffn_width.value()), hidden);
  }

  double skip_factor(const SubLayerPlan& plan) const {
    switch (plan.skip_scale) {
      case SkipScale::one: return 1;
      case SkipScale::deepnorm_alpha: return square_of(deepnorm_alpha(model_));
      case SkipScale::keel_alpha: return square_of(keel_alpha(model_));
      case SkipScale::learned_admin: return square_of(admin_omega(model_));
    }
    return 1;
  }

  /// The factors that stand before every branch, and dropout, which keeps the mean and not the square.
  double branch_factor_square(std::int64_t block) const {
    return square_of(branch_factor(model_) * branch_warmup_factor(model_, 1, block)) / (1 - model_.dropout);
  }

  ScalePrediction sub_layer(std::int64_t block, SubLayerKind kind) {
    const SubLayerPlan& plan = sub_layer_plan(model_, block, kind);
    const bool is_attention = kind == SubLayerKind::attention;
    ScalePrediction prediction{.layer = block, .sublayer = is_attention ? "attention" : "ffn"};
    const std::string prefix = "block." + std::to_string(block) + "." + prediction.sublayer;

    Square z = normed(plan.norm_in, stream_);
    const Square skip = times(plan.skip_is_normed ? z : stream_, skip_factor(plan));
    if (plan.input_scale == InputScale::inverse_sqrt_layer) z = times(z, 1 / static_cast<double>(block));
    Square f = is_attention ? attention(plan, prefix, z) : feed_forward(plan, prefix, z);
    if (plan.norm_branch && normalizes_) f = Band{1, 1};
    f = times(f, branch_factor_square(block));

    join(prediction, skip, f, plan.norm_in, plan.norm_out, plan.adds_block_input);
    if (placement_row(model_.placement).second_stream) {
      second_ = plus(second_, f);
      prediction.dual_rms = root(second_);
    }
    return prediction;
  }

  ScalePrediction dense(std::int64_t block) {
    ScalePrediction prediction{.layer = block, .sublayer = "dense"};
    const std::string prefix = "block." + std::to_string(block) + ".dense";
    const bool pre = model_.placement == Placement::pre;
    const bool has_norm = model_.norm != Norm::none, two_layers = model_.block_layers == 2;
    const auto width = static_cast<double>(model_.width);

    Square f = pre ? activated(normed(has_norm, stream_), /*even=*/false) : stream_;
    f = through(prefix + ".in", width, f);
    if (two_layers) {
      f = activated(normed(has_norm, f), /*even=*/false);
      f = through(prefix + ".out", width, f);
    }
    if (!pre) f = normed(has_norm, f);
    join(prediction, stream_, times(f, branch_factor_square(block)), pre && has_norm, false, false);
    if (!pre && model_.activation != Activation::identity) {
      // Behind the sum stands the activation: of a plain net's symmetric values it lets half pass.
      stream_ = model_.residual == Residual::none ? activated(stream_, /*even=*/false) : std::nullopt;
      prediction.stream_rms = root(stream_);
    }
    return prediction;
  }

  void join(ScalePrediction& prediction, const Square& skip, const Square& f, bool norm_in, bool norm_out,
            bool adds_block_input) {
    const std::optional<SquareFactors> factors = factors_of(model_);
    const Square entered = stream_;
    Square sum, branch;
    if (factors) {
      branch = times(f, factors->branch);
      sum = factors->skip == 0     ? branch
            : factors->branch == 0 ? times(skip, factors->skip)
                                   : plus(times(skip, factors->skip), branch);
    }
    // B2T adds the block's input, which is a part of the skip already: their squares do not add.
    if (adds_block_input) sum = std::nullopt;
    const bool has_norm = model_.norm != Norm::none;
    if (norm_out && has_norm)
      prediction.norm_input_rms = root(sum);
    else if (norm_in && has_norm)
      prediction.norm_input_rms = root(entered);
    if (factors && factors->skip != 0) prediction.branch_rms = root(branch);
    stream_ = norm_out && normalizes_ ? (sum ? normed(true, sum) : Square(Band{1, 1}))
              : norm_out && has_norm  ? std::nullopt
                                      : sum;
    prediction.stream_rms = root(stream_);
  }

  const ModelConfig& model_;
  const InitialStd& initial_std_;
  bool normalizes_;
  Square stream_;
  Square second_;  // ResiDual's
};

}  // namespace

std::optional<Band> ScalePrediction::of(std::string_view column) const {
  if (column == "norm_input_rms") return norm_input_rms;
  if (column == "stream_rms") return stream_rms;
  if (column == "branch_rms") return branch_rms;
  if (column == "dual_rms") return dual_rms;
  return std::nullopt;
}

std::vector<ScalePrediction> predicted_scales(const Config& config, double input_square,
                                              const InitialStd& initial_std) {
  if (config.model.initialization == Initialization::sinusoid) return {};
  Walk walk(config, input_square, initial_std);
  switch (config.model.stack) {
    case StackKind::transformer: return walk.transformer();
    case StackKind::mlp: return walk.mlp();
    case StackKind::resnet: return {};
  }
  return {};
}

}  // namespace gradflow
