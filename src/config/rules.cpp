#include "config/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "config/compatibility.h"
#include "config/derived.h"
#include "config/quantities.h"
#include "config/text.h"

namespace gradflow {
namespace {

template <class Choice>
bool among(Choice choice, const std::vector<Choice>& allowed) {
  return std::find(allowed.begin(), allowed.end(), choice) != allowed.end();
}

template <class Choice>
std::string one_of(const std::vector<Choice>& allowed) {
  return (allowed.size() == 1 ? "write " : "write one of ") + listed(names_of_all(allowed));
}

/// The divisors of `number` up to 1024, smallest first.
std::string divisors(std::int64_t number) {
  std::string out;
  for (std::int64_t d = 1; d <= std::min<std::int64_t>(number, 1024); ++d)
    if (number % d == 0) out += (out.empty() ? "" : ", ") + std::to_string(d);
  return out;
}

void check_stack(Examination& e) {
  const ModelConfig& model = e.config.model;
  const auto placements = allowed_placements(model.stack);
  if (!among(model.placement, placements))
    return e.refuse({"model.placement", "model.stack"},
                    fmt::format("{} is not defined for stack {}; {}", name_of(model.placement), name_of(model.stack),
                                one_of(placements)));
  const auto residuals = allowed_residuals(model.stack, model.placement);
  if (!among(model.residual, residuals))
    e.refuse(
        {"model.residual", "model.placement", "model.stack"},
        fmt::format("{} cannot be combined with placement {} ({}); {}", name_of(model.residual),
                    name_of(model.placement), why_no_other_residual(model.stack, model.placement), one_of(residuals)));
  const auto norms = allowed_norms(model.stack, model.placement);
  if (!among(model.norm, norms))
    e.refuse({"model.norm", "model.placement", "model.stack"},
             fmt::format("{} cannot be combined with placement {} ({}); {}", name_of(model.norm),
                         name_of(model.placement), why_no_other_norm(model.stack, model.placement), one_of(norms)));
  if (model.stack == StackKind::resnet && model.depth % 3 != 0)
    e.refuse({"model.depth", "model.stack"},
             fmt::format("{} cannot be split into the three stages of a resnet; write a multiple of 3", model.depth));
}

void check_transformer(Examination& e) {
  const ModelConfig& model = e.config.model;
  if (model.width % model.heads != 0)
    e.refuse({"model.heads", "model.width"}, fmt::format("{} does not divide model.width {}; write a divisor: {}",
                                                         model.heads, model.width, divisors(model.width)));
  if (model.qk_norm && model.placement == Placement::hybrid_norm)
    e.refuse({"model.qk_norm", "model.placement"}, "hybrid_norm already normalizes q, k and v; write false");
}

void check_norm_sites(Examination& e) {
  const ModelConfig& model = e.config.model;
  if (model.norm != Norm::none) return;
  if (model.final_norm == true)
    e.refuse({"model.final_norm", "model.norm"},
             "true, but model.norm is none; write \"auto\" or false, or choose a norm");
  if (model.embedding_norm == true)
    e.refuse({"model.embedding_norm", "model.norm"},
             "true, but model.norm is none; write \"auto\" or false, or choose a norm");
}

void check_only_transformer(Examination& e) {
  const ModelConfig& model = e.config.model;
  const std::string fault = fmt::format("true, but stack {} has no such part; write false", name_of(model.stack));
  if (model.tie_embeddings) e.refuse({"model.tie_embeddings", "model.stack"}, fault);
  if (model.qk_norm) e.refuse({"model.qk_norm", "model.stack"}, fault);
  if (model.embedding_norm == true) e.refuse({"model.embedding_norm", "model.stack"}, fault);
  if (model.initialization == Initialization::t_fixup)
    e.refuse({"model.initialization", "model.stack"},
             fmt::format("t_fixup is derived for Transformers, not for stack {}; write fixup or another scheme",
                         name_of(model.stack)));
  if (model.stack == StackKind::resnet && model.block_layers != 2)
    e.refuse(
        {"model.block_layers", "model.stack"},
        fmt::format("{} is for stack mlp; a block of a resnet has two weight layers: write 2", model.block_layers));
}

/// The smallest sequence and vocabulary in which a task can be posed.
struct TaskNeeds {
  std::int64_t context = 1;
  std::int64_t vocabulary = 2;
  std::string_view why = "";
};

TaskNeeds needs_of(Task task) {
  switch (task) {
    case Task::copy:
    case Task::reverse:
    case Task::sort: return {3, 3, "symbols, a separator and the answer"};
    case Task::modular: return {3, 3, "a, b and ="};
    default: return {};
  }
}

void check_sequences(Examination& e) {
  const DataConfig& data = e.config.data;
  const TaskNeeds needs = needs_of(data.task);
  const std::int64_t real = data.context - padding_tokens(data);
  if (real < needs.context)
    e.refuse({"data.context", "data.task", "data.padding_fraction"},
             fmt::format("{} leaves {} tokens that are not padding, but task {} needs {} ({}); write a larger context",
                         data.context, real, name_of(data.task), needs.context, needs.why));
  if (data.vocabulary && *data.vocabulary < needs.vocabulary)
    e.refuse({"data.vocabulary", "data.task"},
             fmt::format("{} is too small for task {} ({}); write at least {}", *data.vocabulary, name_of(data.task),
                         needs.why, needs.vocabulary));
  if (data.task == Task::markov && data.vocabulary && *data.vocabulary < data.successors)
    e.refuse({"data.successors", "data.vocabulary"},
             fmt::format("{} successors cannot differ in a vocabulary of {}; write at most {}", data.successors,
                         *data.vocabulary, *data.vocabulary));
  if (e.config.model.norm == Norm::batchnorm && real * e.config.train.batch < 2)
    e.refuse({"train.batch", "data.context", "data.padding_fraction", "model.norm"},
             "batchnorm has no statistics over a single token; write a larger batch or context");
}

void check_vectors(Examination& e) {
  if (e.config.model.norm == Norm::batchnorm && e.config.train.batch < 2)
    e.refuse({"train.batch", "model.norm"}, "batchnorm has no statistics over a single sample; write at least 2");
}

void check_task(Examination& e) {
  const DataConfig& data = e.config.data;
  const auto tasks = allowed_tasks(e.config.model.stack);
  if (!among(data.task, tasks))
    return e.refuse({"data.task", "model.stack"}, fmt::format("{} is no task for stack {}; {}", name_of(data.task),
                                                              name_of(e.config.model.stack), one_of(tasks)));
  if (data.task == Task::text && data.files.empty())
    e.refuse({"data.files", "data.task"},
             "task text has no file to read; write \"files\": [\"my.txt\"], or another task");
  if (data.task == Task::text && data.validation_fraction == 0 && e.config.train.evaluate_every > 0)
    e.refuse({"data.validation_fraction", "train.evaluate_every", "data.task"},
             "0 leaves no text to evaluate on; write for example 0.1, or train.evaluate_every 0");
  const std::set<std::string_view> on_demand = on_demand_among(quantities_asked_for(e.config.record.quantities));
  if (data.task == Task::text && data.validation_fraction == 0 && !on_demand.empty())
    e.refuse({"data.validation_fraction", "record.quantities", "data.task"},
             fmt::format("0 leaves no text to measure {} on; write for example 0.1", *on_demand.begin()));
  e.config.model.stack == StackKind::transformer ? check_sequences(e) : check_vectors(e);
}

void check_training(Examination& e) {
  const TrainConfig& train = e.config.train;
  if (train.decay != Decay::constant && train.warmup >= train.steps)
    e.refuse({"train.warmup", "train.steps", "train.decay"},
             fmt::format("{} leaves none of the {} steps for the decay {}; write fewer than {}, or decay constant",
                         train.warmup, train.steps, name_of(train.decay), train.steps));
}

void check_spikes(Examination& e) {
  const SpikeConfig& spikes = e.config.record.spikes;
  const auto at_most_window = [&](std::string_view key, std::int64_t value) {
    if (value > spikes.window)
      e.refuse({key, "record.spikes.window"}, fmt::format("{} is more than the window of {} values; write at most {}",
                                                          value, spikes.window, spikes.window));
  };
  at_most_window("record.spikes.level_window", spikes.level_window);
  at_most_window("record.spikes.min_count", spikes.min_count);
}

}  // namespace

void Examination::refuse(std::initializer_list<std::string_view> keys, std::string_view fault) {
  const Origin* place = nullptr;
  for (const std::string_view key : keys) {
    if (faults_.concerns(key)) return;
    if (const auto written = origins_.keys.find(key); !place && written != origins_.keys.end())
      place = &written->second;
  }
  faults_.add(place ? *place : origins_.otherwise, *keys.begin(), fault);
}

void Examination::refuse(std::string_view key, std::span<const std::string> faults) {
  if (faults_.concerns(key)) return;
  const auto written = origins_.keys.find(key);
  for (const std::string& fault : faults)
    faults_.add(written == origins_.keys.end() ? origins_.otherwise : written->second, key, fault);
}

void check_combinations(Examination& e) {
  check_stack(e);
  e.config.model.stack == StackKind::transformer ? check_transformer(e) : check_only_transformer(e);
  check_norm_sites(e);
  check_task(e);
  check_training(e);
  check_spikes(e);
  check_backend(e);
}

}  // namespace gradflow
