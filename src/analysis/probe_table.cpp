#include "analysis/probe_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/numbers.h"

namespace gradflow {
namespace {

constexpr const char* nothing = "–";

using Words = std::vector<std::string>;

/// "0.123", "0.123 [0.1, 0.15]".
std::string text_of(const SeedMean& estimate) {
  if (!estimate.mean) return nothing;
  std::string text = significant(*estimate.mean, 3);
  if (estimate.interval)
    text += fmt::format(" [{}, {}]", significant(estimate.interval->low, 3), significant(estimate.interval->high, 3));
  return text;
}

std::string mean_of(const SeedMean& estimate) { return estimate.mean ? significant(*estimate.mean, 4) : nothing; }

/// "1.5", "1.5 to 3".
std::string text_of(const std::optional<Band>& band, int digits) {
  if (!band) return nothing;
  const std::string low = significant(band->low, digits), high = significant(band->high, digits);
  return low == high ? low : low + " to " + high;
}

/// The words of a kind in which the kinds of a probe differ; with one kind none.
class Naming {
 public:
  explicit Naming(std::span<const ProbeCell> cells) : kinds_(probe_kinds(cells)) {
    std::set<std::string> placements, norms, residuals, initializations;
    for (const ProbeKind& kind : kinds_) {
      placements.insert(kind.placement);
      norms.insert(kind.norm);
      residuals.insert(kind.residual);
      initializations.insert(kind.initialization);
    }
    differ_ = {placements.size() > 1, norms.size() > 1, residuals.size() > 1, initializations.size() > 1};
  }

  ProbeTable table(const Words& headings) const {
    return {followed(chosen({"placement", "norm", "residual", "initialization"}), headings), {}};
  }
  ProbeTableRow row(const ProbeKind& kind, const Words& cells) const {
    const auto place = static_cast<std::size_t>(std::find(kinds_.begin(), kinds_.end(), kind) - kinds_.begin());
    return {place, followed(chosen({kind.placement, kind.norm, kind.residual, kind.initialization}), cells)};
  }

 private:
  Words chosen(const Words& words) const {
    Words left;
    for (std::size_t i = 0; i < words.size(); ++i)
      if (differ_[i]) left.push_back(words[i]);
    return left;
  }
  static Words followed(Words front, const Words& rest) {
    front.insert(front.end(), rest.begin(), rest.end());
    return front;
  }

  std::vector<ProbeKind> kinds_;
  std::vector<bool> differ_;
};

Words measured_cells(const ProbeProfile& p) {
  const std::string verdict(name_of(p.profile.verdict, flow_of(p.quantity)));
  return {mean_of(p.first), mean_of(p.last), text_of(p.profile.ratio),
          p.profile.verdict == ProfileVerdict::not_finite ? verdict : text_of(p.profile.rate), verdict};
}

std::string agreement(const ProbeProfile& p) {
  return p.predicted_places == 0 ? nothing : fmt::format("{} of {}", p.agreeing_places, p.predicted_places);
}

}  // namespace

std::vector<ProbeKind> probe_kinds(std::span<const ProbeCell> cells) {
  std::vector<ProbeKind> kinds;
  for (const ProbeCell& cell : cells)
    if (std::find(kinds.begin(), kinds.end(), cell.kind) == kinds.end()) kinds.push_back(cell.kind);
  return kinds;
}

CellProfiles cell_profiles(std::span<const ProbeCell> cells) {
  CellProfiles profiles;
  for (const ProbeCell& cell : cells) profiles.push_back(probe_profiles(cell));
  return profiles;
}

std::vector<std::string> profiled_quantities(const CellProfiles& profiles) {
  Words quantities;
  for (const std::vector<ProbeProfile>& of_cell : profiles)
    for (const ProbeProfile& p : of_cell)
      if (std::find(quantities.begin(), quantities.end(), p.quantity) == quantities.end())
        quantities.push_back(p.quantity);
  return quantities;
}

ProbeTable profile_table(std::span<const ProbeCell> cells, const CellProfiles& profiles) {
  const Naming naming(cells);
  ProbeTable table =
      naming.table({"depth", "quantity", "block 1", "block N", "first/last", "rate a block", "verdict", "predicted"});
  for (std::size_t i = 0; i < cells.size(); ++i)
    for (const ProbeProfile& p : profiles[i]) {
      Words words = {std::to_string(cells[i].depth), p.quantity};
      for (std::string& word : measured_cells(p)) words.push_back(std::move(word));
      words.push_back(agreement(p));
      table.rows.push_back(naming.row(cells[i].kind, words));
    }
  return table;
}

ProbeTable profile_table_of(std::span<const ProbeCell> cells, const CellProfiles& profiles, std::string_view quantity) {
  const Naming naming(cells);
  const auto predicted_one = [&](const ProbeProfile& p) { return p.quantity == quantity && p.predicted_places > 0; };
  const bool predicted = std::any_of(profiles.begin(), profiles.end(), [&](const std::vector<ProbeProfile>& of_cell) {
    return std::any_of(of_cell.begin(), of_cell.end(), predicted_one);
  });
  Words headings = {"depth", "block 1", "block N", "first/last", "rate a block", "verdict"};
  if (predicted) headings.insert(headings.end(), {"predicted block N", "predicted rate", "sub-layers that agree"});
  ProbeTable table = naming.table(headings);
  for (std::size_t i = 0; i < cells.size(); ++i)
    for (const ProbeProfile& p : profiles[i]) {
      if (p.quantity != quantity) continue;
      Words words = {std::to_string(cells[i].depth)};
      for (std::string& word : measured_cells(p)) words.push_back(std::move(word));
      if (predicted)
        words.insert(words.end(), {text_of(p.predictions.back(), 4), text_of(p.predicted_rate, 3), agreement(p)});
      table.rows.push_back(naming.row(cells[i].kind, words));
    }
  return table;
}

ProbeTable stack_table(std::span<const ProbeCell> cells) {
  const Naming naming(cells);
  ProbeTable table = naming.table({"depth", "of the stack", "mean over seeds"});
  for (const ProbeCell& cell : cells)
    for (const ProbeMean& mean : probe_means(cell))
      if (!mean.layer)
        table.rows.push_back(
            naming.row(cell.kind, {std::to_string(cell.depth), mean.quantity, text_of(mean.over_seeds)}));
  return table;
}

ProbeTable depth_table(std::span<const ProbeCell> cells) {
  const Naming naming(cells);
  ProbeTable table = naming.table({"over depth N", "N", "exponent of block N", "exponent of first/last"});
  for (const DepthExponents& e : depth_exponents(cells))
    table.rows.push_back(naming.row(
        e.kind, {e.quantity, fmt::format("{}", fmt::join(e.depths, " ")), text_of(e.last), text_of(e.ratio)}));
  return table;
}

}  // namespace gradflow
