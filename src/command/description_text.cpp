#include "command/description_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "config/constants.h"
#include "config/derived.h"
#include "config/fields.h"
#include "config/formulas.h"
#include "config/resolved.h"
#include "core/memory.h"
#include "core/numbers.h"
#include "kernels/backend.h"
#include "kernels/memory.h"
#include "model/description.h"
#include "output/paragraph.h"
#include "output/text_table.h"

namespace gradflow {
namespace {

/// 1234567 as "1,234,567".
std::string in_thousands(std::int64_t number) {
  std::string out;
  const std::string digits = fmt::format("{}", number);
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out;
}

std::string counted(std::int64_t number, const char* one, const char* many) {
  return fmt::format("{} {}", in_thousands(number), number == 1 ? one : many);
}

std::string heading(const char* title) { return fmt::format("\n{}\n", title); }

std::string title(const Subject& subject) {
  const ModelConfig& model = subject.config.model;
  std::string size =
      fmt::format("{}, {}, width {}", name_of(model.stack), counted(model.depth, "block", "blocks"), model.width);
  if (model.stack == StackKind::transformer)
    size += fmt::format(", {}, ffn {}", counted(model.heads, "head", "heads"), *model.ffn_width);
  return fmt::format("{}: {}\nplacement {}, residual {}, {} parameters\nbackend {}\nrun folder {}\n",
                     subject.config.name, size, name_of(model.placement), name_of(model.residual),
                     in_thousands(subject.layout.parameter_count()), subject.backend, subject.folder);
}

/// The branches of a stack are named once, in the order in which they come.
void add_branches(const StackFormulas& formulas, std::string& out) {
  std::vector<std::string> named;
  for (const BlockFormulas& blocks : formulas.blocks)
    for (const SubLayerFormula& sublayer : blocks.sublayers) {
      const std::string line = sublayer.branch.line();
      if (line.empty() || std::find(named.begin(), named.end(), line) != named.end()) continue;
      named.push_back(line);
      out += paragraph("  ", line);
    }
}

std::string formulas_text(const ModelConfig& model) {
  const StackFormulas formulas = stack_formulas(model);
  std::size_t longest = 0;
  for (const BlockFormulas& blocks : formulas.blocks) longest = std::max(longest, block_range(blocks).size());
  const auto label = [&](const std::string& place, const std::string& sublayer, const char* letter) {
    return fmt::format("  {:<{}}  {:<9}  {} ← ", place, longest, sublayer, letter);
  };
  const bool transformer = model.stack == StackKind::transformer;
  std::string out = heading("Formulas (x is the stream)");
  out += paragraph(label("start", transformer ? "embedding" : "stem", "x"), formulas.start.line());
  for (const BlockFormulas& blocks : formulas.blocks) {
    std::string place = block_range(blocks);
    for (const SubLayerFormula& sublayer : blocks.sublayers) {
      out += paragraph(label(place, sublayer.sublayer, "x"), sublayer.stream.line());
      if (!sublayer.second.empty()) out += paragraph(label("", "", "r"), sublayer.second);
      place.clear();
    }
  }
  if (!formulas.blocks.front().sublayers.front().second.empty()) out += "  r starts at the embedding\n";
  out += paragraph(fmt::format("  {:<{}}  {:<9}  ", "end", longest, "logits"), formulas.end.line());
  add_branches(formulas, out);
  return out;
}

std::string norms_text(const ModelConfig& model) {
  const auto presence = [](bool present, const std::optional<bool>& configured) {
    return fmt::format("{}{}", present ? "yes" : "no", configured ? ", configured" : "");
  };
  TextTable table(2);
  table.add({"norm", model.norm == Norm::none
                         ? "none"
                         : fmt::format("{}, ε {}", name_of(model.norm), shortest(model.norm_epsilon))});
  table.add({"final norm", presence(has_final_norm(model), model.final_norm)});
  if (model.stack == StackKind::transformer) {
    table.add({"embedding norm", presence(has_embedding_norm(model), model.embedding_norm)});
    table.add({"positions", std::string(name_of(model.positions))});
    table.add({"head", model.tie_embeddings ? "the token embedding, tied" : "a matrix of its own"});
  }
  return heading("Norms, embedding, head") + table.text(2);
}

std::string constants_text(const ModelConfig& model) {
  TextTable table(3);
  for (const Constant& constant : model_constants(model))
    table.add({constant.symbol, significant(constant.value, 7), constant.meaning});
  return heading("Constants (N = model.depth)") + table.text(2);
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string out;
  for (const std::int64_t extent : shape) out += (out.empty() ? "" : " × ") + std::to_string(extent);
  return out.empty() ? "scalar" : out;
}

std::string parameters_text(const Subject& subject) {
  TextTable table({"group", "shape", "count", "elements", "start", "decay"});
  for (const ParameterGroup& group : parameter_groups(subject.layout))
    table.add({group.name, shape_text(group.shape), in_thousands(group.tensors), in_thousands(group.elements),
               start_in_words(group), group.decays ? "yes" : "no"});
  std::string out = heading("Parameters by group (count of tensors; start: a constant, or the standard deviation)");
  out += table.text(2);
  const DecayGroups groups = decay_groups(subject.layout);
  const auto words = [](const DecayGroup& group) {
    return fmt::format("{} in {}", counted(group.elements, "element", "elements"),
                       counted(group.tensors, "tensor", "tensors"));
  };
  const double decay = subject.config.train.weight_decay;
  out += heading("Weight decay") + fmt::format("  strength {}{}\n", shortest(decay), decay == 0 ? " (off)" : "");
  TextTable decay_table(2);
  decay_table.add({"decayed: matrices, embeddings", words(groups.decayed)});
  decay_table.add({"not decayed: biases, gains, scalars", words(groups.not_decayed)});
  return out + decay_table.text(2);
}

/// On the CPU, whatever device was found: the words say so.
MemoryEstimate memory_of(const Subject& subject) {
  return memory_estimate(subject.config, subject.layout, chosen_backend(subject.config, at::kCPU));
}

std::string activations_in_words(const Subject& subject) {
  if (!subject.config.compute.recompute) return "activations";
  const std::int64_t group = recompute_group(subject.config, subject.layout);
  return group == 1 ? "activations, a layer recomputed at a time"
                    : fmt::format("activations, {} layers recomputed at a time", group);
}

std::string memory_text(const Subject& subject) {
  const MemoryEstimate estimate = memory_of(subject);
  TextTable table(2);
  table.add({"program and LibTorch", bytes_in_words(estimate.program)});
  constexpr std::array<std::string_view, 3> moments{"values, gradients", "values, gradients, momentum",
                                                    "values, gradients, two moments"};
  table.add({std::string(moments.at(static_cast<std::size_t>(moment_count(subject.config.train)))),
             bytes_in_words(estimate.parameters)});
  table.add({activations_in_words(subject), bytes_in_words(estimate.activations)});
  table.add({"logits", bytes_in_words(estimate.logits)});
  if (estimate.data > 0) table.add({"text", bytes_in_words(estimate.data)});
  table.add({"together", bytes_in_words(estimate.total())});
  std::string out = heading("Memory at the peak of a run on the CPU (estimated)") + table.text(2);
  if (const auto available = available_memory()) {
    out += fmt::format("  available now: {}\n", bytes_in_words(static_cast<double>(*available)));
    if (const auto warning = memory_fault(subject.config, estimate, *available))
      out += paragraph("  warning: ", *warning);
  }
  return out;
}

std::string task_text(const Subject& subject) {
  const TaskFacts& facts = subject.facts;
  TextTable table(2);
  table.add({"task", std::string(name_of(subject.config.data.task))});
  if (facts.vocabulary > 0)
    table.add({subject.config.model.stack == StackKind::transformer ? "vocabulary" : "classes",
               std::to_string(facts.vocabulary)});
  const auto add = [&](const char* what, const auto& value, auto words) {
    if (value) table.add({what, words(*value)});
  };
  const auto nats = [](double value) { return significant(value, 5) + " nats"; };
  add("loss of the best constant answer", facts.unigram_entropy, nats);
  add("loss of the best answer", facts.entropy_rate, nats);
  add("bytes", facts.text_bytes, in_thousands);
  add("tokens", facts.text_tokens, in_thousands);
  add("distinct tokens", facts.distinct_tokens, in_thousands);
  return heading("Task") + table.text(2);
}

/// The keys whose value is not the default.
std::vector<const Field*> changed_fields(const Config& config) {
  std::vector<const Field*> out;
  for (const auto& field : fields())
    if (!field->is_default(config)) out.push_back(field.get());
  return out;
}

std::string changed_text(const Config& config) {
  TextTable table(3);
  bool any = false;
  for (const Field* field : changed_fields(config)) {
    any = true;
    const std::string otherwise =
        field->default_words().empty() ? field->value(resolved(Config{})).dump() : field->default_words();
    table.add({std::string(field->key()), field->value(config).dump(), "default " + otherwise});
  }
  return heading("Keys that differ from their defaults") + (any ? table.text(2) : "  none\n");
}

}  // namespace

std::string description_text(const Subject& subject) {
  const Config& config = subject.config;
  return title(subject) + formulas_text(config.model) + norms_text(config.model) + constants_text(config.model) +
         parameters_text(subject) + memory_text(subject) + task_text(subject) + changed_text(config) +
         heading("Every key") + to_json(config).dump(2) + "\n";
}

nlohmann::ordered_json description_json(const Subject& subject) {
  const Config& config = subject.config;
  Json groups = Json::array();
  for (const ParameterGroup& group : parameter_groups(subject.layout))
    groups.push_back({{"name", group.name},
                      {"shape", group.shape},
                      {"tensors", group.tensors},
                      {"elements", group.elements},
                      {"distribution", name_of(group.distribution)},
                      {"mean", group.offset},
                      {"least_std", group.least_std},
                      {"greatest_std", group.greatest_std},
                      {"decays", group.decays}});
  const DecayGroups decay = decay_groups(subject.layout);
  const auto decay_json = [](const DecayGroup& group) {
    return Json{{"tensors", group.tensors}, {"elements", group.elements}};
  };
  const MemoryEstimate memory = memory_of(subject);
  const auto available = available_memory();
  const auto bytes = [](double value) { return static_cast<std::int64_t>(value); };
  const auto or_null = [](const auto& value) { return value ? Json(*value) : Json(); };
  const TaskFacts& facts = subject.facts;
  Json changed = Json::object();
  for (const Field* field : changed_fields(config)) changed[std::string(field->key())] = field->value(config);
  return {{"name", config.name},
          {"folder", subject.folder},
          {"backend", subject.backend},
          {"derived", derived_json(config, subject.layout, subject.files_hash)},
          {"parameter_groups", std::move(groups)},
          {"decay_groups", {{"decayed", decay_json(decay.decayed)}, {"not_decayed", decay_json(decay.not_decayed)}}},
          {"memory_bytes",
           {{"program", bytes(memory.program)},
            {"parameters", bytes(memory.parameters)},
            {"activations", bytes(memory.activations)},
            {"logits", bytes(memory.logits)},
            {"data", bytes(memory.data)},
            {"total", bytes(memory.total())},
            {"available", or_null(available)}}},
          {"task",
           {{"vocabulary", facts.vocabulary},
            {"unigram_entropy", or_null(facts.unigram_entropy)},
            {"entropy_rate", or_null(facts.entropy_rate)},
            {"text_bytes", or_null(facts.text_bytes)},
            {"text_tokens", or_null(facts.text_tokens)},
            {"distinct_tokens", or_null(facts.distinct_tokens)}}},
          {"changed", std::move(changed)},
          {"config", to_json(config)}};
}

}  // namespace gradflow
