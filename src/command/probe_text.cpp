#include "command/probe_text.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "analysis/probe_table.h"
#include "output/text_table.h"

namespace gradflow {
namespace {

using Json = nlohmann::ordered_json;

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(); }

Json json_of(const SeedMean& estimate) {
  return {{"mean", estimate.mean ? number(*estimate.mean) : Json()},
          {"low", estimate.interval ? number(estimate.interval->low) : Json()},
          {"high", estimate.interval ? number(estimate.interval->high) : Json()}};
}

Json json_of(const ProbeKind& kind) {
  return {{"placement", kind.placement},
          {"norm", kind.norm},
          {"residual", kind.residual},
          {"initialization", kind.initialization}};
}

std::string text_of(const ProbeTable& table) {
  if (table.rows.empty()) return "";
  TextTable text(table.headings);
  for (const ProbeTableRow& row : table.rows) text.add(row.cells);
  return text.text();
}

}  // namespace

std::string probe_text(std::span<const ProbeCell> cells) {
  std::string text;
  for (const ProbeTable& table : {profile_table(cells, cell_profiles(cells)), stack_table(cells), depth_table(cells)}) {
    const std::string own = text_of(table);
    text += (text.empty() || own.empty() ? "" : "\n") + own;
  }
  return text;
}

Json probe_json(std::span<const ProbeCell> cells) {
  Json profiles = Json::array(), numbers = Json::array(), over_depth = Json::array();
  for (const ProbeCell& cell : cells) {
    for (const ProbeProfile& p : probe_profiles(cell)) {
      Json entry = json_of(cell.kind);
      entry.update({{"depth", cell.depth},
                    {"quantity", p.quantity},
                    {"seeds", p.profile.seeds},
                    {"first", json_of(p.first)},
                    {"last", json_of(p.last)},
                    {"ratio", json_of(p.profile.ratio)},
                    {"rate_per_block", json_of(p.profile.rate)},
                    {"exponent", json_of(p.profile.exponent)},
                    {"form", p.profile.better ? Json(name_of(*p.profile.better)) : Json()},
                    {"verdict", name_of(p.profile.verdict, flow_of(p.quantity))},
                    {"predicted_places", p.predicted_places},
                    {"agreeing_places", p.agreeing_places}});
      profiles.push_back(std::move(entry));
    }
    for (const ProbeMean& mean : probe_means(cell)) {
      if (mean.layer) continue;
      Json entry = json_of(cell.kind);
      entry.update({{"depth", cell.depth}, {"quantity", mean.quantity}, {"seeds", mean.seeds}});
      entry["value"] = json_of(mean.over_seeds);
      numbers.push_back(std::move(entry));
    }
  }
  for (const DepthExponents& e : depth_exponents(cells)) {
    Json entry = json_of(e.kind);
    entry.update({{"quantity", e.quantity},
                  {"depths", e.depths},
                  {"last_block", json_of(e.last)},
                  {"first_over_last", json_of(e.ratio)}});
    over_depth.push_back(std::move(entry));
  }
  return {{"profiles", profiles}, {"numbers", numbers}, {"over_depth", over_depth}};
}

}  // namespace gradflow
