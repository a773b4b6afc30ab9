#include "claims/outcome.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>

#include "analysis/recorded_run.h"
#include "analysis/run_series.h"
#include "claims/evaluation.h"
#include "claims/run_statistics.h"
#include "core/error.h"
#include "core/files.h"
#include "core/numbers.h"
#include "output/table.h"
#include "output/text_table.h"

namespace gradflow {
namespace {

constexpr auto claims_columns = std::to_array<Column>({
    {"id", "the claim's file"},
    {"topic", "what it is about"},
    {"verdict", "reproduced, refuted, not reproduced or undecided"},
    {"expected", "the verdict that the literature lets expect"},
    {"value", "the number, its mean over the seeds"},
    {"low", "lower end of its 95 % interval"},
    {"high", "upper end"},
    {"seeds", "how many"},
    {"seconds", "that its runs took"},
    {"runs", "how many"},
});

constexpr auto numbers_columns = std::to_array<Column>({
    {"seed", "of the run"},
    {"statistic", "what was read, and where in the claim file it stands"},
    {"value", "the number"},
    {"run", "the run folder it was read from"},
});

double seconds_of(const RecordedRun& run) {
  const std::string_view column = "seconds";
  const StepSeries series = read_timing(run, {&column, 1});
  return series.columns[0].empty() ? 0 : series.columns[0].back();
}

std::string text_of(const std::optional<double>& value) { return value ? significant(*value, 4) : "–"; }

std::string interval_text(const ClaimJudgement& judgement) {
  if (!judgement.interval) return "";
  return fmt::format("[{}, {}]", text_of(judgement.interval->low), text_of(judgement.interval->high));
}

Json json_of(const std::optional<double>& value) { return value && std::isfinite(*value) ? Json(*value) : Json(); }

/// "9 reproduced, 3 refuted, 1 undecided".
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

/// A Markdown cell.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

/// The positions in each thing that the literature disagrees about, side by side with what each of them measures.
std::string conflicts(std::span<const ClaimOutcome> outcomes) {
  std::string text;
  std::vector<std::string> told;
  for (const ClaimOutcome& first : outcomes) {
    const std::string& conflict = first.claim->conflict;
    if (conflict.empty() || std::find(told.begin(), told.end(), conflict) != told.end()) continue;
    told.push_back(conflict);
    text += fmt::format(
        "\n### {}\n\n| position | source | what is measured | verdict | value |\n"
        "| --- | --- | --- | --- | --- |\n",
        conflict);
    for (const ClaimOutcome& outcome : outcomes)
      if (outcome.claim->conflict == conflict)
        text += fmt::format("| {} (`{}`) | {} | {} | {} | {} {} |\n", escaped(outcome.claim->statement),
                            outcome.claim->id, escaped(outcome.claim->source), escaped(outcome.claim->note),
                            name_of(outcome.judgement.verdict), text_of(outcome.judgement.value),
                            interval_text(outcome.judgement));
  }
  return text.empty() ? text : "\n## Where the literature disagrees\n" + text;
}

/// A word of a CSV file has no comma and no quote.
std::string plain(std::string text) {
  for (char& c : text)
    if (c == ',' || c == '"' || c == '\n') c = ';';
  return text;
}

void write_numbers(const ClaimOutcome& outcome, const std::string& path) {
  CsvFile file(path, numbers_columns);
  for (const ReadNumber& number : outcome.numbers)
    file.write(std::array<Cell, 4>{number.seed, plain(number.statistic), number.value,
                                   number.run.empty() ? Cell{} : Cell{plain(number.run)}});
  file.flush();
}

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
        outcome.numbers.push_back({seed, fmt::format("{} ({})", row_of(leaf.kind).name, leaf.path), value, last->path});
        return value;
      }));
      outcome.numbers.push_back({seed, "result", values.back(), ""});
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

ClaimOutcome judge_check(const Claim& claim, const std::function<double(std::int64_t seed)>& run) {
  ClaimOutcome outcome{.claim = &claim};
  const auto start = std::chrono::steady_clock::now();
  std::vector<double> values;
  try {
    for (const std::int64_t seed : claim.seeds) {
      values.push_back(run(seed));
      outcome.numbers.push_back({seed, std::string(claim.check->row->name), values.back(), ""});
    }
    outcome.judgement = judge(values, claim.criterion, claim.averaging);
  } catch (const Error& error) {
    outcome.failure = error.lines().front();
    outcome.judgement.reason = "the check failed: " + outcome.failure;
  }
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return outcome;
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
    table.add({outcome.claim->id, std::string(name_of(outcome.judgement.verdict)), text_of(outcome.judgement.value),
               interval_text(outcome.judgement), std::to_string(outcome.judgement.seeds),
               outcome.claim->criterion.words()});
  std::string text = table.text() + '\n' + count_of_verdicts(outcomes) + '\n';
  for (const ClaimOutcome& outcome : outcomes)
    if (outcome.judgement.verdict == ClaimVerdict::undecided || outcomes.size() == 1)
      text += fmt::format("{}: {}\n", outcome.claim->id, outcome.judgement.reason);
  return text;
}

std::string outcomes_markdown(std::span<const ClaimOutcome> outcomes, const std::string& command) {
  std::string text = fmt::format(
      "# Claims\n\nMade by `{}`. {}. One number for each claim, its mean over the seeds and its 95 % Student interval; "
      "the claim files say how it is taken, `numbers/` holds what it was taken from.\n",
      command, count_of_verdicts(outcomes));
  std::vector<std::string> topics;
  for (const ClaimOutcome& outcome : outcomes)
    if (std::find(topics.begin(), topics.end(), outcome.claim->topic) == topics.end())
      topics.push_back(outcome.claim->topic);
  for (const std::string& topic : topics) {
    text += fmt::format(
        "\n## {}\n\n| claim | source | verdict | value | 95 % interval | seeds | criterion |\n"
        "| --- | --- | --- | --- | --- | --- | --- |\n",
        topic);
    for (const ClaimOutcome& outcome : outcomes) {
      if (outcome.claim->topic != topic) continue;
      text += fmt::format("| **{0}** {1} | {2} | [{3}](numbers/{0}.csv) | {4} | {5} | {6} | {7} |\n", outcome.claim->id,
                          escaped(outcome.claim->statement), escaped(outcome.claim->source),
                          name_of(outcome.judgement.verdict), text_of(outcome.judgement.value),
                          interval_text(outcome.judgement), outcome.judgement.seeds, outcome.claim->criterion.words());
    }
  }
  text += conflicts(outcomes);
  const auto remarkable = [](const ClaimOutcome& outcome) {
    return outcome.judgement.verdict == ClaimVerdict::undecided || outcome.judgement.verdict != outcome.claim->expected;
  };
  if (std::any_of(outcomes.begin(), outcomes.end(), remarkable)) text += "\n## Undecided, or not as expected\n\n";
  for (const ClaimOutcome& outcome : outcomes)
    if (remarkable(outcome))
      text += fmt::format("- **{}**: {}, expected {}. {}.\n", outcome.claim->id, name_of(outcome.judgement.verdict),
                          name_of(outcome.claim->expected), outcome.judgement.reason);
  return text;
}

void write_outcomes(std::span<const ClaimOutcome> outcomes, const std::string& folder, const std::string& command) {
  create_folders(folder + "/numbers");
  remove_file(folder + "/claims.csv");
  CsvFile table(folder + "/claims.csv", claims_columns);
  for (const ClaimOutcome& outcome : outcomes) {
    const ClaimJudgement& judgement = outcome.judgement;
    const auto end = [&](double MeanInterval::*which) {
      return judgement.interval ? Cell{(*judgement.interval).*which} : Cell{};
    };
    table.write(std::array<Cell, 10>{
        plain(outcome.claim->id), plain(outcome.claim->topic), std::string(name_of(judgement.verdict)),
        std::string(name_of(outcome.claim->expected)), cell(judgement.value), end(&MeanInterval::low),
        end(&MeanInterval::high), judgement.seeds, outcome.seconds, static_cast<std::int64_t>(outcome.runs.size())});
    write_numbers(outcome, fmt::format("{}/numbers/{}.csv", folder, outcome.claim->id));
  }
  table.flush();
  write_file_atomically(folder + "/claims.md", outcomes_markdown(outcomes, command));
}

}  // namespace gradflow
