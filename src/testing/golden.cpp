#include "testing/golden.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace gradflow::testing {
namespace {

const std::filesystem::path folder = "src/testing/golden";

template <class Choice>
void read_choice(const nlohmann::json& config, const char* key, Choice& choice) {
  if (config.contains(key)) choice = choice_named<Choice>(config.at(key).get<std::string>()).value();
}

}  // namespace

nlohmann::json golden_case(const std::string& name) {
  std::ifstream file(folder / (name + ".json"));
  if (!file) throw std::runtime_error("no golden case " + name);
  return nlohmann::json::parse(file);
}

std::vector<std::string> golden_names(const std::vector<std::string>& prefixes, bool begins) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    const std::string name = entry.path().stem();
    const bool matches =
        std::any_of(prefixes.begin(), prefixes.end(), [&](const std::string& p) { return name.starts_with(p); });
    if (matches == begins) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

Config golden_config(const nlohmann::json& c, Dtype dtype) {
  Config config;
  config.name = "golden";
  config.compute.dtype = dtype;
  ModelConfig& model = config.model;
  model.initialization = Initialization::sinusoid;
  read_choice(c, "stack", model.stack);
  read_choice(c, "norm", model.norm);
  read_choice(c, "placement", model.placement);
  read_choice(c, "residual", model.residual);
  read_choice(c, "activation", model.activation);
  model.depth = c.at("depth");
  model.width = c.at("width");
  model.heads = c.value("heads", model.heads);
  model.ffn_width = c.value("ffn_width", 4 * model.width);
  model.norm_epsilon = c.at("eps");
  model.causal = c.value("causal", true);
  model.qk_norm = c.value("qk_norm", false);
  model.tie_embeddings = c.value("tie_embeddings", false);
  switch (model.residual) {
    case Residual::scaled: model.residual_gate = 1; break;
    case Residual::rezero: model.residual_gate = 0; break;
    case Residual::layerscale: model.residual_gate = 0.1; break;
    default: break;
  }
  if (c.contains("gate_value")) model.residual_gate = c.at("gate_value").get<double>();
  switch (model.stack) {
    case StackKind::transformer: config.data.task = Task::quadratic; break;
    case StackKind::mlp: config.data.task = Task::teacher; break;
    case StackKind::resnet: config.data.task = Task::cifar10; break;
  }
  config.data.vocabulary = c.value("vocab", std::int64_t{0});
  config.data.context = c.value("context", std::int64_t{0});
  config.data.inputs = c.value("inputs", config.data.inputs);
  config.data.classes = c.value("classes", config.data.classes);
  config.data.side = 8;
  config.train.batch = c.at("batch");
  if (c.contains("train")) {
    const nlohmann::json& t = c.at("train");
    TrainConfig& train = config.train;
    read_choice(t, "optimizer", train.optimizer);
    read_choice(t, "decay", train.decay);
    train.steps = t.at("steps");
    train.learning_rate = t.at("learning_rate");
    train.warmup = t.at("warmup");
    train.final_fraction = t.at("final_fraction");
    train.betas = t.at("betas").get<std::vector<double>>();
    train.epsilon = t.at("epsilon");
    train.weight_decay = t.at("weight_decay");
    train.momentum = t.at("momentum");
    if (!t.at("clip_norm").is_null()) train.clip_norm = t.at("clip_norm").get<double>();
    train.accumulation = t.at("accumulation");
  }
  return config;
}

}  // namespace gradflow::testing
