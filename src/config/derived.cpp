#include "config/derived.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "config/placements.h"

namespace gradflow {

double deepnorm_alpha(const ModelConfig& model) {
  return model.deepnorm_alpha.value_or(std::pow(2.0 * static_cast<double>(model.depth), 0.25));
}

double deepnorm_beta(const ModelConfig& model) {
  return model.deepnorm_beta.value_or(std::pow(8.0 * static_cast<double>(model.depth), -0.25));
}

double keel_alpha(const ModelConfig& model) {
  return model.keel_alpha.value_or(2.0 * static_cast<double>(model.depth));
}

double admin_omega(const ModelConfig& model) {
  const double n = 2.0 * static_cast<double>(model.depth);
  return std::sqrt((n + 1) / std::log(n + 1) - 1);
}

double placement_gain(const ModelConfig& model) {
  switch (placement_row(model.placement).gain) {
    case BranchGain::one: return 1;
    case BranchGain::deepnorm_beta: return deepnorm_beta(model);
    case BranchGain::sqrt_log_2n: return std::sqrt(std::log(2.0 * static_cast<double>(model.depth)));
  }
  return 1;
}

std::int64_t resnet_stage(const ModelConfig& model, std::int64_t block) { return 3 * (block - 1) / model.depth; }

double branch_factor(const ModelConfig& model) {
  return model.branch_scale / std::pow(static_cast<double>(model.depth), model.branch_scale_exponent);
}

double branch_warmup_factor(const ModelConfig& model, std::int64_t step, std::int64_t block) {
  if (model.branch_warmup == 0) return 1;
  return std::min(static_cast<double>(step) / (static_cast<double>(model.branch_warmup) * static_cast<double>(block)),
                  1.0);
}

bool has_final_norm(const ModelConfig& model) {
  if (model.norm == Norm::none) return false;
  return model.final_norm.value_or(placement_row(model.placement).final_step != FinalStep::nothing);
}

bool has_embedding_norm(const ModelConfig& model) {
  if (model.norm == Norm::none) return false;
  return model.embedding_norm.value_or(placement_row(model.placement).embedding_norm);
}

double embedding_std(const ModelConfig& model) {
  if (model.embedding_std) return *model.embedding_std;
  const double width = static_cast<double>(model.width);
  if (model.initialization == Initialization::t_fixup)
    return std::pow(width, -0.5) * std::pow(9.0 * static_cast<double>(model.depth), -0.25);
  if (model.initialization == Initialization::normal || model.initialization == Initialization::gpt2)
    return model.init_std;
  return model.tie_embeddings ? std::pow(width, -0.5) : std::numbers::sqrt2 / 2;
}

std::optional<double> initial_gate(Residual residual) {
  switch (residual) {
    case Residual::scaled: return 1;
    case Residual::rezero: return 0;
    case Residual::layerscale: return 0.1;
    default: return std::nullopt;
  }
}

std::optional<std::int64_t> default_vocabulary(const DataConfig& data) {
  if (data.task != Task::text) return 64;
  if (data.tokenizer == Tokenizer::byte) return 256;
  return std::nullopt;
}

std::int64_t padding_tokens(const DataConfig& data) { return share_of(data.padding_fraction, data.context); }

std::int64_t share_of(double fraction, std::int64_t whole) {
  constexpr double rounding = 4 * std::numeric_limits<double>::epsilon();
  return static_cast<std::int64_t>(std::floor(fraction * static_cast<double>(whole) * (1 + rounding)));
}

int moment_count(const TrainConfig& train) {
  if (train.optimizer != OptimizerKind::sgd) return 2;
  return train.momentum > 0 ? 1 : 0;
}

double learning_rate(const TrainConfig& train, std::int64_t step) {
  const double peak = train.learning_rate;
  if (step <= train.warmup) return peak * static_cast<double>(step) / static_cast<double>(train.warmup);
  const double after = static_cast<double>(step - train.warmup);
  const double f = after / static_cast<double>(train.steps - train.warmup);
  const double r = train.final_fraction;
  switch (train.decay) {
    case Decay::constant: return peak;
    case Decay::linear: return peak * (1 - (1 - r) * f);
    case Decay::cosine: return peak * (r + (1 - r) * 0.5 * (1 + std::cos(std::numbers::pi * f)));
    case Decay::inverse_sqrt:
      return peak * std::sqrt(static_cast<double>(std::max<std::int64_t>(train.warmup, 1)) / static_cast<double>(step));
  }
  return peak;
}

}  // namespace gradflow
