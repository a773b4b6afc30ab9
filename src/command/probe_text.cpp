#include "command/probe_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "core/numbers.h"
#include "output/text_table.h"

namespace gradflow {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* nothing = "–";

/// "0.123", "0.123 [0.1, 0.15]".
std::string text_of(const SeedEstimate& estimate) {
  if (!estimate.mean) return nothing;
  std::string text = significant(*estimate.mean, 3);
  if (estimate.interval)
    text += fmt::format(" [{}, {}]", significant(estimate.interval->low, 3), significant(estimate.interval->high, 3));
  return text;
}

std::string mean_of(const SeedEstimate& estimate) { return estimate.mean ? significant(*estimate.mean, 4) : nothing; }

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(); }

Json json_of(const SeedEstimate& estimate) {
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

/// The words of a kind in which the kinds of a probe differ; with one kind none.
class Naming {
 public:
  explicit Naming(std::span<const ProbeCell> cells) {
    std::set<std::string> placements, norms, residuals, initializations;
    for (const ProbeCell& cell : cells) {
      placements.insert(cell.kind.placement);
      norms.insert(cell.kind.norm);
      residuals.insert(cell.kind.residual);
      initializations.insert(cell.kind.initialization);
    }
    differ_ = {placements.size() > 1, norms.size() > 1, residuals.size() > 1, initializations.size() > 1};
  }

  std::vector<std::string> headings() const { return chosen({"placement", "norm", "residual", "initialization"}); }
  std::vector<std::string> words(const ProbeKind& kind) const {
    return chosen({kind.placement, kind.norm, kind.residual, kind.initialization});
  }

 private:
  std::vector<std::string> chosen(const std::vector<std::string>& words) const {
    std::vector<std::string> left;
    for (std::size_t i = 0; i < words.size(); ++i)
      if (differ_[i]) left.push_back(words[i]);
    return left;
  }

  std::vector<bool> differ_;
};

std::vector<std::string> row(std::vector<std::string> front, const std::vector<std::string>& rest) {
  front.insert(front.end(), rest.begin(), rest.end());
  return front;
}

/// Numbers of whole stacks and of single blocks that are no profile.
bool is_of_stack(const ProbeMean& mean) { return !mean.layer.has_value(); }

}  // namespace

std::string probe_text(std::span<const ProbeCell> cells) {
  const Naming naming(cells);
  TextTable profiles(row(naming.headings(), {"depth", "quantity", "block 1", "block N", "first/last", "rate a block",
                                             "verdict", "predicted"}));
  bool any_stack_number = false, any_profile = false;
  for (const ProbeCell& cell : cells) {
    for (const ProbeProfile& p : probe_profiles(cell)) {
      any_profile = true;
      const Flow flow = flow_of(p.quantity);
      profiles.add(
          row(naming.words(cell.kind),
              {std::to_string(cell.depth), p.quantity, mean_of(p.first), mean_of(p.last), text_of(p.profile.ratio),
               text_of(p.profile.rate), std::string(name_of(p.profile.verdict, flow)),
               p.predicted_places == 0 ? std::string(nothing)
                                       : fmt::format("{} of {}", p.agreeing_places, p.predicted_places)}));
    }
    for (const ProbeMean& mean : probe_means(cell)) any_stack_number |= is_of_stack(mean);
  }
  std::string text = any_profile ? profiles.text() : "";

  if (any_stack_number) {
    TextTable numbers(row(naming.headings(), {"depth", "of the stack", "mean over seeds"}));
    for (const ProbeCell& cell : cells)
      for (const ProbeMean& mean : probe_means(cell))
        if (is_of_stack(mean))
          numbers.add(
              row(naming.words(cell.kind), {std::to_string(cell.depth), mean.quantity, text_of(mean.over_seeds)}));
    text += (text.empty() ? "" : "\n") + numbers.text();
  }

  const std::vector<DepthExponents> exponents = depth_exponents(cells);
  if (!exponents.empty()) {
    TextTable over_depth(
        row(naming.headings(), {"over depth N", "N", "exponent of block N", "exponent of first/last"}));
    for (const DepthExponents& e : exponents)
      over_depth.add(row(naming.words(e.kind),
                         {e.quantity, fmt::format("{}", fmt::join(e.depths, " ")), text_of(e.last), text_of(e.ratio)}));
    text += (text.empty() ? "" : "\n") + over_depth.text();
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
      if (!is_of_stack(mean)) continue;
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
