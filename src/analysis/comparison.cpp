#include "analysis/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "analysis/run_series.h"
#include "config/nearest.h"
#include "config/overrides.h"
#include "config/text.h"
#include "core/error.h"

namespace gradflow {
namespace {

using Values = std::vector<std::optional<double>>;

/// A number of the depth profiles in summary.json, which run itself has fitted.
std::optional<double> profile_number(const RecordedRun& run, std::string_view step, std::string_view quantity,
                                     std::string_view what) {
  return run.number(fmt::format("/profiles/{}/{}/{}", step, quantity, what));
}

std::vector<double> present(const Values& values) {
  std::vector<double> result;
  for (const std::optional<double>& value : values)
    if (value) result.push_back(*value);
  return result;
}

GroupResult result_of(const Study& study, const StudyGroup& group, std::vector<LeftOut>& damaged) {
  GroupResult result;
  std::int64_t gradients_not_finite = 0, variances_not_finite = 0;
  Values losses, first_ratios, ratios, gradient_rates, variance_rates, speeds;
  for (const std::size_t place : group.runs) {
    const RecordedRun& run = study.runs[place];
    if (!run.finished()) {
      ++result.unfinished;
      continue;
    }
    if (const std::optional<Verdict> verdict = run.verdict())
      ++result.verdicts[static_cast<std::size_t>(std::find(all_verdicts.begin(), all_verdicts.end(), *verdict) -
                                                 all_verdicts.begin())];
    else
      ++result.without_verdict;
    losses.push_back(run.final_loss());
    result.loss_spikes += static_cast<std::int64_t>(run.number("/spikes/loss").value_or(0));
    result.grad_norm_spikes += static_cast<std::int64_t>(run.number("/spikes/grad_norm").value_or(0));
    first_ratios.push_back(profile_number(run, "first_step", "stream_grad_norm", "ratio"));
    ratios.push_back(profile_number(run, "last_step", "stream_grad_norm", "ratio"));
    gradient_rates.push_back(profile_number(run, "last_step", "stream_grad_norm", "rate_per_block"));
    variance_rates.push_back(profile_number(run, "last_step", "stream_variance", "rate_per_block"));
    const auto is_not_finite = [&](std::string_view quantity) {
      return profile_number(run, "last_step", quantity, "not_finite_blocks").value_or(0) > 0;
    };
    if (is_not_finite("stream_grad_norm")) ++gradients_not_finite;
    if (is_not_finite("stream_variance")) ++variances_not_finite;
    try {
      speeds.push_back(steps_per_second(run));
    } catch (const Error& error) {
      damaged.push_back({run.path, error.lines().front()});
    }
  }
  const std::int64_t depth = study.runs[group.runs.front()].config.model.depth;
  result.final_loss = over_seeds(losses);
  result.gradient_ratio_first_step = geometric_over_seeds(first_ratios);
  result.gradient_ratio = geometric_over_seeds(ratios);
  result.gradient_rate = over_seeds(gradient_rates);
  result.gradient_profile = profile_verdict(present(gradient_rates), depth, gradients_not_finite);
  result.variance_rate = over_seeds(variance_rates);
  result.variance_profile = profile_verdict(present(variance_rates), depth, variances_not_finite);
  result.steps_per_second = over_seeds(speeds);
  return result;
}

Cell low(const OverSeeds& value) { return value.interval ? Cell{value.interval->low} : Cell{}; }
Cell high(const OverSeeds& value) { return value.interval ? Cell{value.interval->high} : Cell{}; }

Cell word(ProfileVerdict verdict, Flow flow) { return std::string(name_of(verdict, flow)); }

constexpr auto columns = std::to_array<ComparisonColumn>({
    {"runs", "runs that are finished or diverged", [](const GroupResult& r) -> Cell { return r.finished(); }},
    {"unfinished", "runs that are running, interrupted, killed or failed; they enter no other column",
     [](const GroupResult& r) -> Cell { return r.unfinished; }},
    {"learned", "runs with this verdict", [](const GroupResult& r) -> Cell { return r.count(Verdict::learned); }},
    {"learning", "runs with this verdict", [](const GroupResult& r) -> Cell { return r.count(Verdict::learning); }},
    {"stuck", "runs with this verdict", [](const GroupResult& r) -> Cell { return r.count(Verdict::stuck); }},
    {"worse", "runs with this verdict", [](const GroupResult& r) -> Cell { return r.count(Verdict::worse); }},
    {"diverged", "runs with this verdict", [](const GroupResult& r) -> Cell { return r.count(Verdict::diverged); }},
    {"final_loss", "mean over seeds of the mean of the last 20 losses",
     [](const GroupResult& r) { return cell(r.final_loss.mean); }},
    {"final_loss_low", "lower end of its 95 % Student interval; empty below three seeds",
     [](const GroupResult& r) { return low(r.final_loss); }},
    {"final_loss_high", "upper end", [](const GroupResult& r) { return high(r.final_loss); }},
    {"final_loss_seeds", "runs that have a final loss: those that did not end at a value that is not finite",
     [](const GroupResult& r) -> Cell { return r.final_loss.seeds; }},
    {"loss_spikes", "spike episodes of the loss, all runs together",
     [](const GroupResult& r) -> Cell { return r.loss_spikes; }},
    {"grad_norm_spikes", "spike episodes of the gradient norm, all runs together",
     [](const GroupResult& r) -> Cell { return r.grad_norm_spikes; }},
    {"gradient_ratio_first_step",
     "‖∂L/∂x‖ after the first block divided by that after the last, at the first step; geometric mean over seeds",
     [](const GroupResult& r) { return cell(r.gradient_ratio_first_step.mean); }},
    {"gradient_ratio", "the same at the last step", [](const GroupResult& r) { return cell(r.gradient_ratio.mean); }},
    {"gradient_rate", "slope of ln ‖∂L/∂x‖ for each block away from the output, at the last step; mean over seeds",
     [](const GroupResult& r) { return cell(r.gradient_rate.mean); }},
    {"gradient_rate_low", "lower end of its 95 % Student interval; empty below three seeds",
     [](const GroupResult& r) { return low(r.gradient_rate); }},
    {"gradient_rate_high", "upper end", [](const GroupResult& r) { return high(r.gradient_rate); }},
    {"gradient_profile",
     "vanishing, falling, flat, rising or exploding; undecided below three seeds; not finite where every seed's blocks "
     "overflowed",
     [](const GroupResult& r) { return word(r.gradient_profile, Flow::gradient); }},
    {"variance_rate",
     "slope of the logarithm of the stream's variance for each block away from the input, at the last step",
     [](const GroupResult& r) { return cell(r.variance_rate.mean); }},
    {"variance_rate_low", "lower end of its 95 % Student interval; empty below three seeds",
     [](const GroupResult& r) { return low(r.variance_rate); }},
    {"variance_rate_high", "upper end", [](const GroupResult& r) { return high(r.variance_rate); }},
    {"variance_profile", "shrinking, falling, flat, rising or growing; undecided and not finite likewise",
     [](const GroupResult& r) { return word(r.variance_profile, Flow::activation); }},
    {"steps_per_second", "steps a second by timing.csv, mean over seeds; what else ran on the machine counts in",
     [](const GroupResult& r) { return cell(r.steps_per_second.mean); }},
});

/// Puts groups and results into the order of `places`.
void arrange(Comparison& comparison, const std::vector<std::size_t>& places) {
  std::vector<StudyGroup> groups;
  std::vector<GroupResult> results;
  for (const std::size_t place : places) {
    groups.push_back(std::move(comparison.study.groups[place]));
    results.push_back(std::move(comparison.results[place]));
  }
  comparison.study.groups = std::move(groups);
  comparison.results = std::move(results);
}

/// Stable; `before` compares two places.
template <class Before>
void arrange_by(Comparison& comparison, Before before) {
  std::vector<std::size_t> places(comparison.results.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  std::stable_sort(places.begin(), places.end(), before);
  arrange(comparison, places);
}

void sort_by_key(Comparison& comparison, std::size_t key, bool descending) {
  const std::vector<std::size_t> rank = value_ranks(comparison.study, key);
  arrange_by(comparison,
             [&](std::size_t a, std::size_t b) { return descending ? rank[a] > rank[b] : rank[a] < rank[b]; });
}

bool is_empty(const Cell& value) {
  if (const double* number = std::get_if<double>(&value)) return *number != *number;
  return std::holds_alternative<std::monostate>(value);
}

void sort_by_cells(Comparison& comparison, const ComparisonColumn& column, bool descending) {
  std::vector<Cell> cells;
  for (const GroupResult& result : comparison.results) cells.push_back(column.cell(result));
  arrange_by(comparison, [&](std::size_t a, std::size_t b) {
    if (is_empty(cells[a]) || is_empty(cells[b])) return !is_empty(cells[a]) && is_empty(cells[b]);
    return descending ? cells[b] < cells[a] : cells[a] < cells[b];
  });
}

void sort_by_verdict(Comparison& comparison, bool descending) {
  arrange_by(comparison, [&](std::size_t a, std::size_t b) {
    const auto& left = comparison.results[a].verdicts;
    const auto& right = comparison.results[b].verdicts;
    return descending ? left < right : right < left;
  });
}

}  // namespace

std::int64_t GroupResult::finished() const {
  return std::accumulate(verdicts.begin(), verdicts.end(), without_verdict);
}

std::int64_t GroupResult::count(Verdict verdict) const {
  const auto place = std::find(all_verdicts.begin(), all_verdicts.end(), verdict) - all_verdicts.begin();
  return verdicts[static_cast<std::size_t>(place)];
}

std::span<const ComparisonColumn> comparison_columns() { return columns; }

Comparison compare(Study study) {
  Comparison comparison;
  for (const StudyGroup& group : study.groups)
    comparison.results.push_back(result_of(study, group, comparison.damaged));
  comparison.study = std::move(study);
  return comparison;
}

void sort_groups(Comparison& comparison, std::string_view column) {
  constexpr std::string_view descending_mark = ":desc";
  const bool descending = column.ends_with(descending_mark);
  const std::string_view name = descending ? column.substr(0, column.size() - descending_mark.size()) : column;

  std::vector<std::string_view> keys, names;
  for (const StudyKey& key : comparison.study.keys) keys.push_back(key.key);
  if (const auto meant = keys_meant(name, keys); meant.size() == 1)
    return sort_by_key(
        comparison, static_cast<std::size_t>(std::find(keys.begin(), keys.end(), meant[0]) - keys.begin()), descending);
  if (name == "verdict") return sort_by_verdict(comparison, descending);
  for (const ComparisonColumn& known : columns)
    if (known.name == name) return sort_by_cells(comparison, known, descending);

  for (const StudyKey& key : comparison.study.keys) names.push_back(key.label);
  names.push_back("verdict");
  for (const ComparisonColumn& known : columns) names.push_back(known.name);
  if (const std::size_t colon = name.find(':'); colon != std::string_view::npos) {
    const std::string_view column_meant = name.substr(0, colon);
    if (keys_meant(column_meant, keys).size() == 1 ||
        std::find(names.begin(), names.end(), column_meant) != names.end())
      throw Error(fmt::format("--sort {}: {} is no order; write {} or {}:desc", shown(column),
                              in_quotes(name.substr(colon + 1)), column_meant, column_meant),
                  Exit::usage);
  }
  throw Error(fmt::format("--sort {}: is no column of this comparison; did you mean {}? There are {}", shown(column),
                          nearest_word(name, names), listed(names)),
              Exit::usage);
}

}  // namespace gradflow
