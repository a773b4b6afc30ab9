// Gradients against finite differences in double: every placement, residual form, norm and stack.

#include <gtest/gtest.h>

#include <functional>
#include <ostream>

#include "config/placements.h"
#include "data/source.h"
#include "testing/finite_differences.h"

namespace gradflow {
namespace {

struct Case {
  std::string name;
  Config config;
};

void PrintTo(const Case& each, std::ostream* out) { *out << each.name; }

/// Small, smooth, and with every gate open.
Config small(StackKind stack) {
  Config config;
  config.seed = 3;
  config.compute.dtype = Dtype::float64;
  ModelConfig& model = config.model;
  model.stack = stack;
  model.width = 8;
  model.activation = Activation::tanh;
  model.residual_gate = 0.3;
  config.train.batch = 2;
  switch (stack) {
    case StackKind::transformer:
      model.depth = 2;
      model.heads = 2;
      model.ffn_width = 10;
      model.mix_post_fraction = 0.5;
      config.data.task = Task::quadratic;
      config.data.vocabulary = 7;
      config.data.context = 5;
      break;
    case StackKind::mlp:
      model.depth = 2;
      model.placement = Placement::post;
      config.data.task = Task::teacher;
      config.data.inputs = 5;
      config.data.classes = 3;
      config.train.batch = 6;
      break;
    case StackKind::resnet:
      model.depth = 3;
      model.width = 2;
      model.placement = Placement::post;
      config.data.task = Task::cifar10;
      config.data.classes = 3;
      config.data.side = 6;
      break;
  }
  return config;
}

std::string joined(std::initializer_list<std::string_view> words) {
  std::string out;
  for (const std::string_view word : words) out += (out.empty() ? "" : "_") + std::string(word);
  return out;
}

template <class Choice>
std::vector<Choice> all_of() {
  std::vector<Choice> choices;
  for (std::size_t i = 0; i < names_of(Choice{}).size(); ++i) choices.push_back(static_cast<Choice>(i));
  return choices;
}

std::vector<Case> transformer_cases() {
  std::vector<Case> cases;
  const auto add = [&](std::string name, const std::function<void(Config&)>& change) {
    Config config = small(StackKind::transformer);
    change(config);
    cases.push_back({std::move(name), config});
  };
  for (const Placement placement : all_of<Placement>())
    add(joined({name_of(placement), "add"}), [&](Config& c) { c.model.placement = placement; });
  for (const Residual residual : all_of<Residual>()) {
    if (residual == Residual::add) continue;
    add(joined({"none_residual", name_of(residual)}), [&](Config& c) {
      c.model.placement = Placement::none;
      c.model.norm = Norm::none;
      c.model.residual = residual;
    });
    add(joined({"pre_residual", name_of(residual)}), [&](Config& c) { c.model.residual = residual; });
  }
  for (const Norm norm : all_of<Norm>())
    for (const Placement placement : {Placement::pre, Placement::post})
      if (norm != Norm::layernorm)
        add(joined({name_of(placement), "norm", name_of(norm)}), [&](Config& c) {
          c.model.placement = placement;
          c.model.norm = norm;
        });
  add("switches", [](Config& c) {
    c.model.activation = Activation::gelu;
    c.model.qk_norm = c.model.tie_embeddings = true;
    c.model.causal = c.model.bias = false;
    c.model.positions = Positions::sinusoidal;
    c.model.embedding_norm = c.model.final_norm = true;
    c.model.placement = Placement::post;
  });
  add("scaled_and_dropped_branches", [](Config& c) {
    c.model.branch_scale = 0.7;
    c.model.branch_scale_exponent = 0.5;
    c.model.branch_warmup = 8;
    c.model.dropout = 0.3;
  });
  for (const Norm norm : {Norm::layernorm, Norm::batchnorm})
    add(joined({"padded", name_of(norm)}), [&](Config& c) {
      c.model.norm = norm;
      c.data.padding_fraction = 0.4;
    });
  return cases;
}

std::vector<Case> feedforward_cases(StackKind stack) {
  std::vector<Case> cases;
  const auto add = [&](std::string name, const std::function<void(Config&)>& change) {
    Config config = small(stack);
    change(config);
    cases.push_back({joined({name_of(stack), name}), config});
  };
  for (const Placement placement : {Placement::pre, Placement::post}) {
    for (const Norm norm : {Norm::none, Norm::layernorm, Norm::rmsnorm, Norm::center, Norm::batchnorm, Norm::dyt})
      if (stack == StackKind::mlp || (norm != Norm::center && norm != Norm::dyt))
        add(joined({name_of(placement), "norm", name_of(norm)}), [&](Config& c) {
          c.model.placement = placement;
          c.model.norm = norm;
        });
    for (const Residual residual : {Residual::none, Residual::scaled, Residual::rezero, Residual::sqrt2})
      add(joined({name_of(placement), "residual", name_of(residual)}), [&](Config& c) {
        c.model.placement = placement;
        c.model.residual = residual;
      });
  }
  add("scaled_and_dropped_branches", [](Config& c) {
    c.model.branch_scale = 0.7;
    c.model.branch_scale_exponent = 0.5;
    c.model.branch_warmup = 8;
    c.model.dropout = 0.3;
    c.model.bias = false;
  });
  if (stack == StackKind::mlp) {
    add("one_layer_a_block", [](Config& c) { c.model.block_layers = 1; });
    add("one_layer_a_block_pre", [](Config& c) {
      c.model.block_layers = 1;
      c.model.placement = Placement::pre;
    });
    add("identity", [](Config& c) { c.data.task = Task::identity; });
    add("images", [](Config& c) {
      c.data.task = Task::cifar10;
      c.data.side = 2;
    });
  }
  return cases;
}

std::vector<Case> all_cases() {
  std::vector<Case> cases = transformer_cases();
  for (const StackKind stack : {StackKind::mlp, StackKind::resnet})
    for (Case& each : feedforward_cases(stack)) cases.push_back(std::move(each));
  return cases;
}

class Gradient : public ::testing::TestWithParam<Case> {};

TEST_P(Gradient, AgreesWithFiniteDifferences) {
  const Config& config = GetParam().config;
  const Batch batch = make_source(config)->training_batch(1, 0);
  testing::expect_gradients_match(config, batch, /*pass_step=*/3);
}

INSTANTIATE_TEST_SUITE_P(Cases, Gradient, ::testing::ValuesIn(all_cases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace gradflow
