#include "model/description.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numbers>
#include <utility>

#include "config/constants.h"
#include "config/derived.h"
#include "config/formulas.h"
#include "core/files.h"
#include "core/numbers.h"
#include "core/philox.h"

namespace gradflow {
namespace {

using Json = nlohmann::ordered_json;

/// "attention.q.weight" of "block.3.attention.q.weight".
std::string without_block(const std::string& name) {
  constexpr std::string_view start = "block.";
  return name.starts_with(start) ? name.substr(name.find('.', start.size()) + 1) : name;
}

Json formulas_json(const StackFormulas& formulas) {
  Json blocks = Json::array();
  for (const BlockFormulas& range : formulas.blocks) {
    Json entry{{"first", range.first}, {"last", range.last}};
    for (const SubLayerFormula& sublayer : range.sublayers) {
      entry[sublayer.sublayer] = sublayer.stream.line();
      if (!sublayer.second.empty()) entry[sublayer.sublayer + "_r"] = sublayer.second;
      if (!sublayer.branch.text.empty()) entry[sublayer.sublayer + "_branch"] = sublayer.branch.line();
    }
    blocks.push_back(std::move(entry));
  }
  return {{"start", formulas.start.line()}, {"blocks", std::move(blocks)}, {"end", formulas.end.line()}};
}

/// A number for each name, or [least, greatest] where it depends on the block. The stages of a resnet share a name.
Json initial_std_json(const std::vector<ParameterGroup>& groups) {
  Json out = Json::object();
  for (const ParameterGroup& group : groups) {
    if (group.distribution == Distribution::constant || group.distribution == Distribution::two_identities) continue;
    double least = group.least_std, greatest = group.greatest_std;
    for (const ParameterGroup& other : groups)
      if (other.name == group.name) {
        least = std::min(least, other.least_std);
        greatest = std::max(greatest, other.greatest_std);
      }
    out[group.name] = least == greatest ? Json(least) : Json::array({least, greatest});
  }
  return out;
}

}  // namespace

double initial_std(const ParameterSpec& parameter) {
  const Fill& fill = parameter.fill;
  switch (fill.distribution) {
    case Distribution::constant: return 0;
    case Distribution::normal:
    case Distribution::uniform: return fill.std;
    case Distribution::orthogonal: {
      // Unit vectors along the shorter side, so each entry has mean square 1 / longer side.
      const std::int64_t rows = parameter.shape.front(), columns = parameter.size() / rows;
      return fill.std / std::sqrt(static_cast<double>(std::max(rows, columns)));
    }
    case Distribution::sinusoid: return fill.std / std::numbers::sqrt2;
    case Distribution::two_identities: {
      const double share = 1 / static_cast<double>(parameter.shape.front());
      return std::sqrt(share * (1 - share));
    }
  }
  return 0;
}

std::vector<ParameterGroup> parameter_groups(const Layout& layout) {
  std::vector<ParameterGroup> groups;
  std::map<std::pair<std::string, std::vector<std::int64_t>>, std::size_t> place;
  for (const SegmentSpec& segment : layout.segments)
    for (const ParameterSpec& parameter : segment.parameters) {
      std::string name = without_block(parameter.name);
      const double std = initial_std(parameter);
      const auto [found, is_new] = place.try_emplace({name, parameter.shape}, groups.size());
      if (is_new)
        groups.push_back({.name = std::move(name),
                          .shape = parameter.shape,
                          .distribution = parameter.fill.distribution,
                          .offset = parameter.fill.offset,
                          .least_std = std,
                          .greatest_std = std,
                          .decays = parameter.decays()});
      ParameterGroup& group = groups[found->second];
      group.tensors += 1;
      group.elements += parameter.size();
      group.least_std = std::min(group.least_std, std);
      group.greatest_std = std::max(group.greatest_std, std);
    }
  return groups;
}

std::string start_in_words(const ParameterGroup& group) {
  const auto digits = [](double value) { return significant(value, 5); };
  const std::string std = group.greatest_std == group.least_std
                              ? fmt::format("std {}", digits(group.least_std))
                              : fmt::format("std {}-{}", digits(group.least_std), digits(group.greatest_std));
  switch (group.distribution) {
    case Distribution::constant: return digits(group.offset);
    case Distribution::normal: return group.greatest_std == 0 ? "0" : std;
    case Distribution::uniform: return fmt::format("uniform, {}", std);
    case Distribution::orthogonal: return fmt::format("orthogonal, {}", std);
    case Distribution::sinusoid:
      return group.offset == 0 ? fmt::format("wave, {}", std)
                               : fmt::format("wave about {}, {}", digits(group.offset), std);
    case Distribution::two_identities: return "[I I]";
  }
  return std;
}

DecayGroups decay_groups(const Layout& layout) {
  DecayGroups groups;
  for (const SegmentSpec& segment : layout.segments)
    for (const ParameterSpec& parameter : segment.parameters) {
      DecayGroup& group = parameter.decays() ? groups.decayed : groups.not_decayed;
      group.tensors += 1;
      group.elements += parameter.size();
    }
  return groups;
}

std::string data_files_hash(const Config& config) {
  std::string out;
  for (const std::string& path : config.data.files)
    out += fmt::format("{}{:016x}", out.empty() ? "" : "+", fnv1a64(read_file(path)));
  return out;
}

Json derived_json(const Config& config, const Layout& layout, std::string_view files_hash) {
  const DecayGroups decay = decay_groups(layout);
  Json out{{"parameters", layout.parameter_count()},
           {"parameters_decayed", decay.decayed.elements},
           {"parameters_not_decayed", decay.not_decayed.elements}};
  for (const Constant& constant : model_constants(config.model)) out[constant.name] = constant.value;
  out["embedding_norm"] = has_embedding_norm(config.model);
  out["final_norm"] = has_final_norm(config.model);
  out["formulas"] = formulas_json(stack_formulas(config.model));
  out["initial_std"] = initial_std_json(parameter_groups(layout));
  if (!files_hash.empty()) out["data_files_hash"] = files_hash;
  return out;
}

}  // namespace gradflow
