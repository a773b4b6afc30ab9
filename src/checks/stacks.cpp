#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>

#include "checks/checks.h"
#include "config/derived.h"
#include "config/resolved.h"
#include "data/source.h"
#include "model/stack.h"
#include "train/trainer.h"

namespace gradflow {
namespace {

/// The small Transformer on `markov` of the checks: width 32, context 32, batch 16, ReLU, Xavier-normal.
Config small_transformer(std::int64_t depth, std::uint64_t seed) {
  Config config;
  config.name = "check";
  config.seed = static_cast<std::int64_t>(seed);
  config.model.depth = depth;
  config.model.width = 32;
  config.model.activation = Activation::relu;
  config.data.context = 32;
  config.train.optimizer = OptimizerKind::adam;
  return resolved(config);
}

/// Keeps what one forward pass shows.
class Boundaries final : public Watcher {
 public:
  struct Boundary {
    at::Tensor input, output;
    Inside inside;
  };
  void forward_done(std::size_t, const Stream& input, const Stream& output, const Inside& inside,
                    const Batch&) override {
    seen.push_back({input.x, output.x, inside});
  }
  void gradient_arrived(std::size_t, const Stream&) override {}
  Taps taps() const override { return {.residual_terms = true}; }

  std::vector<Boundary> seen;
};

std::vector<Boundaries::Boundary> look(Stack& stack, const Batch& batch) {
  Boundaries boundaries;
  Watcher* const watcher = &boundaries;
  stack.forward({.batch = &batch, .training = false, .keep = false, .update_statistics = false}, {&watcher, 1});
  return boundaries.seen;
}

at::Tensor layer_normalized(const at::Tensor& x, double epsilon) {
  const at::Tensor centred = x - x.mean(-1, true);
  return centred / (centred.square().mean(-1, true) + epsilon).sqrt();
}

double sum_formula(const OperatorCheck& check, std::uint64_t seed) {
  Config config = small_transformer(check.count("depth"), seed);
  config.model.placement = *choice_named<Placement>(check.word("placement"));
  config.compute.dtype = Dtype::float64;
  Stack stack(config, at::kCPU);
  const auto source = make_source(config);
  const auto seen = look(stack, source->training_batch(1, 0));
  const double alpha = config.model.placement == Placement::deepnorm ? deepnorm_alpha(config.model) : 1;
  const bool norm_after = config.model.placement == Placement::post || config.model.placement == Placement::deepnorm;
  double largest = 0;
  for (std::size_t s = 0; s < seen.size(); ++s) {
    const std::int64_t layer = stack.layout().segments[s].layer;
    if (layer < 1 || layer > config.model.depth) continue;
    const at::Tensor sum = alpha * seen[s].input + seen[s].inside.branch;
    largest = std::max(
        largest,
        relative_difference(seen[s].output, norm_after ? layer_normalized(sum, config.model.norm_epsilon) : sum));
  }
  return largest;
}

double gradient_error(const OperatorCheck& check, std::uint64_t seed) {
  Config config = small_transformer(check.count("depth"), seed);
  config.model.placement = *choice_named<Placement>(check.word("placement"));
  config.compute.dtype = Dtype::float64;
  // Central differences need a smooth function.
  config.model.activation = Activation::gelu;
  Stack stack(config, at::kCPU);
  const auto source = make_source(config);
  const Batch batch = source->training_batch(1, 0);
  Pass pass{.batch = &batch, .update_statistics = false};
  stack.forward(pass);
  stack.backward(pass, 1);
  pass.keep = false;
  const at::Tensor start = stack.store().values().detach().clone();
  // The gaps between tensors stay zero.
  at::Tensor direction = normals(start.sizes(), seed, "direction") * stack.store().gradients().ne(0);
  direction = direction / direction.norm();
  const double derivative = (stack.store().gradients() * direction).sum().item<double>();
  const auto loss_at = [&](double distance) {
    const at::NoGradGuard no_grad;
    stack.store().values().copy_(start + distance * direction);
    return stack.forward(pass).item<double>();
  };
  constexpr double step = 1e-3;
  const auto slope = [&](double h) { return (loss_at(h) - loss_at(-h)) / (2 * h); };
  const double difference = (4 * slope(step) - slope(2 * step)) / 3;
  return std::abs(derivative - difference) / std::abs(difference);
}

/// Nobody looks.
class Nobody final : public Observer {
 public:
  void step_done(const StepResult&) override {}
};

double mode_gap(const OperatorCheck& check, std::uint64_t seed) {
  Config config = small_transformer(check.count("depth"), seed);
  config.model.norm = *choice_named<Norm>(check.word("norm"));
  config.train.steps = check.count("steps");
  Stack stack(config, at::kCPU);
  const auto source = make_source(config);
  Nobody nobody;
  Trainer(config, stack, *source, at::kCPU, {&nobody}).run();
  const Batch batch = source->validation_batch(0);
  const auto loss = [&](bool training) {
    const at::NoGradGuard no_grad;
    return stack.forward({.batch = &batch, .training = training, .keep = false, .update_statistics = false})
        .item<double>();
  };
  return std::abs(loss(true) - loss(false));
}

double model_update(const OperatorCheck& check, std::uint64_t seed) {
  Config config = small_transformer(check.count("depth"), seed);
  config.model.placement = *choice_named<Placement>(check.word("placement"));
  config.train.optimizer = *choice_named<OptimizerKind>(check.word("optimizer"));
  config.train.learning_rate = check.number("learning_rate");
  config.train.steps = check.count("steps");
  Stack stack(config, at::kCPU);
  const auto source = make_source(config);
  const Batch batch = source->validation_batch(0);
  const auto logits = [&] { return look(stack, batch).back().inside.logits.to(at::kDouble); };
  const at::Tensor before = logits();
  Nobody nobody;
  Trainer(config, stack, *source, at::kCPU, {&nobody}).run();
  return (logits() - before).square().mean().sqrt().item<double>();
}

}  // namespace

double stack_check(const OperatorCheck& check, std::uint64_t seed) {
  switch (check.row->kind) {
    case OperatorKind::sum_formula: return sum_formula(check, seed);
    case OperatorKind::stack_gradient: return gradient_error(check, seed);
    case OperatorKind::mode_gap: return mode_gap(check, seed);
    case OperatorKind::model_update: return model_update(check, seed);
    default: throw std::logic_error("no check of a stack");
  }
}

}  // namespace gradflow
