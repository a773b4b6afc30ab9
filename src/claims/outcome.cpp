#include "claims/outcome.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/recorded_run.h"
#include "analysis/run_series.h"
#include "claims/evaluation.h"
#include "core/error.h"
#include "core/numbers.h"
#include "output/text_table.h"

namespace gradflow {
namespace {

double seconds_of(const RecordedRun& run) {
  const std::string_view column = "seconds";
  const StepSeries series = read_timing(run, {&column, 1});
  return series.columns[0].empty() ? 0 : series.columns[0].back();
}

Json json_of(const std::optional<double>& value) { return value && std::isfinite(*value) ? Json(*value) : Json(); }

}  // namespace

ClaimOutcome judge_runs(const Claim& claim, std::span<const ClaimRun> runs) {
  ClaimOutcome outcome{.claim = &claim};
  std::map<std::size_t, RecordedRun> read;
  for (std::size_t cell = 0; cell < runs.size(); ++cell) {
    outcome.runs.push_back(runs[cell].folder);
    if (!runs[cell].failure.empty()) {
      if (outcome.failure.empty()) outcome.failure = fmt::format("{}: {}", runs[cell].folder, runs[cell].failure);
      continue;
    }
    auto found = read_run(runs[cell].folder);
    if (const LeftOut* left_out = std::get_if<LeftOut>(&found)) {
      if (outcome.failure.empty()) outcome.failure = fmt::format("{}: {}", left_out->path, left_out->reason);
      continue;
    }
    outcome.seconds += seconds_of(std::get<RecordedRun>(found));
    read.emplace(cell, std::move(std::get<RecordedRun>(found)));
  }
  outcome.judgement.seeds = static_cast<std::int64_t>(claim.seeds.size());
  if (!outcome.failure.empty()) {
    outcome.judgement.reason = "a run failed: " + outcome.failure;
    return outcome;
  }
  std::vector<double> values;
  for (const std::int64_t seed : claim.seeds) {
    const RecordedRun* last = nullptr;
    try {
      values.push_back(evaluate(*claim.statistic, claim.cells, seed, [&](const Statistic& leaf, std::size_t cell) {
        last = &read.at(cell);
        const double value = read_leaf(leaf, *last);
        outcome.numbers.push_back({seed, fmt::format("{} ({})", row_of(leaf.kind).name, leaf.path), value, last->path,
                                   source_of(leaf, last->config)});
        return value;
      }));
      outcome.numbers.push_back({seed, "result", values.back(), "", {}});
    } catch (const Error& error) {
      // To leave a seed out would judge those that went well.
      outcome.judgement.reason = fmt::format("seed {} has no number: {}{}", seed, error.lines().front(),
                                             last == nullptr ? "" : fmt::format(" ({})", last->path));
      return outcome;
    }
  }
  outcome.judgement = judge(values, claim.criterion, claim.averaging);
  return outcome;
}

ClaimOutcome judge_check(const Claim& claim, std::span<const CheckNumber> numbers) {
  ClaimOutcome outcome{.claim = &claim};
  outcome.judgement.seeds = static_cast<std::int64_t>(claim.seeds.size());
  std::vector<double> values;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    outcome.seconds += numbers[i].seconds;
    if (!numbers[i].failure.empty()) {
      outcome.failure = numbers[i].failure;
      outcome.judgement.reason = "the check failed: " + outcome.failure;
      return outcome;
    }
    values.push_back(numbers[i].value);
    outcome.numbers.push_back({claim.seeds[i], std::string(claim.check->row->name), values.back(), "", {}});
  }
  outcome.judgement = judge(values, claim.criterion, claim.averaging);
  return outcome;
}

std::vector<double> ClaimOutcome::results() const {
  std::vector<double> values;
  for (const ReadNumber& number : numbers)
    if (number.run.empty()) values.push_back(number.value);
  return values;
}

Json outcomes_json(std::span<const ClaimOutcome> outcomes) {
  Json json = Json::array();
  for (const ClaimOutcome& outcome : outcomes) {
    const ClaimJudgement& judgement = outcome.judgement;
    const auto end = [&](double MeanInterval::*which) {
      return judgement.interval ? json_of((*judgement.interval).*which) : Json();
    };
    json.push_back({{"id", outcome.claim->id},
                    {"statement", outcome.claim->statement},
                    {"verdict", name_of(judgement.verdict)},
                    {"value", json_of(judgement.value)},
                    {"low", end(&MeanInterval::low)},
                    {"high", end(&MeanInterval::high)},
                    {"seeds", judgement.seeds},
                    {"criterion", outcome.claim->criterion.words()},
                    {"reason", judgement.reason},
                    {"seconds", std::round(outcome.seconds * 100) / 100},
                    {"runs", outcome.runs}});
  }
  return json;
}

std::string outcomes_text(std::span<const ClaimOutcome> outcomes) {
  TextTable table({"claim", "verdict", "value", "95 % interval", "seeds", "criterion"});
  for (const ClaimOutcome& outcome : outcomes)
    table.add({outcome.claim->id, std::string(name_of(outcome.judgement.verdict)), value_text(outcome.judgement.value),
               interval_text(outcome.judgement), std::to_string(outcome.judgement.seeds),
               outcome.claim->criterion.words()});
  std::string text = table.text() + '\n' + count_of_verdicts(outcomes) + '\n';
  for (const ClaimOutcome& outcome : outcomes)
    if (outcome.judgement.verdict == ClaimVerdict::undecided || outcomes.size() == 1)
      text += fmt::format("{}: {}\n", outcome.claim->id, outcome.judgement.reason);
  return text;
}

std::string count_of_verdicts(std::span<const ClaimOutcome> outcomes) {
  std::string text;
  for (const std::string_view name : names_of(ClaimVerdict{})) {
    const auto count = std::count_if(outcomes.begin(), outcomes.end(), [&](const ClaimOutcome& outcome) {
      return name_of(outcome.judgement.verdict) == name;
    });
    if (count > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, name);
  }
  return text;
}

std::string value_text(const std::optional<double>& value) { return value ? significant(*value, 4) : "–"; }

std::string interval_text(const ClaimJudgement& judgement) {
  if (!judgement.interval) return "";
  return fmt::format("[{}, {}]", value_text(judgement.interval->low), value_text(judgement.interval->high));
}

}  // namespace gradflow
