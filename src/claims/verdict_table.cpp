#include "claims/verdict_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <set>

#include "core/error.h"
#include "core/files.h"
#include "output/csv_rows.h"

namespace gradflow {
namespace {

namespace fs = std::filesystem;

constexpr auto columns = std::to_array<Column>({
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
    {"length", "full, or quick: fewer seeds, steps and depths"},
    {"file", "the claim file"},
    {"checksum", "of that file and its base"},
    {"reason", "what decided, and what would have decided otherwise"},
    {"command", "that judged it"},
});

constexpr auto numbers_columns = std::to_array<Column>({
    {"seed", "of the run"},
    {"statistic", "what was read, and where in the claim file it stands; result: the seed's number"},
    {"value", "the number"},
    {"run", "the run folder it was read from, from the folder of claims.csv on"},
    {"file", "of that folder"},
    {"column", "of that file"},
    {"step", "whose row it is"},
    {"block", "of which it is"},
});

/// A word for a file and for names inside a picture.
std::string word_of(const std::string& text) {
  std::string word;
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    else if (!word.empty() && word.back() != '-')
      word += '-';
  }
  while (word.ends_with('-')) word.pop_back();
  return word;
}

/// A Markdown cell.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

/// A text as a cell; a row stays one line, also with a message of several.
Cell word(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text.empty() ? Cell{} : Cell{std::move(text)};
}

std::string line_of(std::span<const Cell> cells) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) line += (i == 0 ? "" : ",") + csv_text(cells[i]);
  return line + '\n';
}

std::string numbers_file(const std::string& folder, const std::string& id) {
  return fmt::format("{}/numbers/{}.csv", folder, id);
}

/// The path from the folder on, where it lies below: so that the folder can move.
std::string below(const std::string& path, const std::string& folder) {
  return path.starts_with(folder + '/') ? path.substr(folder.size() + 1) : path;
}

void write_numbers(const ClaimOutcome& outcome, const std::string& folder) {
  std::string rows = header_line(numbers_columns) + '\n';
  for (const ReadNumber& number : outcome.numbers)
    rows += line_of(std::array<Cell, 8>{number.seed, number.statistic, number.value, word(below(number.run, folder)),
                                        word(number.source.file), word(number.source.column), word(number.source.step),
                                        word(number.source.block)});
  write_file_atomically(numbers_file(folder, outcome.claim->id), rows);
}

std::vector<ReadNumber> read_numbers(const std::string& path) {
  std::vector<ReadNumber> numbers;
  constexpr std::array<std::string_view, 8> all{"seed", "statistic", "value", "run", "file", "column", "step", "block"};
  read_csv_rows(path, numbers_columns, all, [&](const CsvRow& row) {
    const auto text = [&](std::size_t i) { return std::string(row.text(i)); };
    numbers.push_back({row.integer(0), text(1), row.number(2), text(3), {text(4), text(5), text(6), text(7)}});
  });
  return numbers;
}

/// The claim of a row and its numbers, as long as they are what the verdict was made from; else why they are not.
std::optional<std::string> restore(const VerdictRow& row, const std::string& folder, EarlierOutcomes& into) {
  const std::string again = fmt::format("gradflow claims run {} judges it again", row.file);
  const auto length = row.length == name_of(ClaimLength::quick) ? ClaimLength::quick : ClaimLength::full;
  const auto verdict = choice_named<ClaimVerdict>(row.verdict);
  if (!verdict) return fmt::format("{} is no verdict; {}", row.verdict, again);
  try {
    Claim claim = load_claim(row.file, length);
    if (claim.checksum != row.checksum) return fmt::format("{} has changed since; {}", row.file, again);
    ClaimOutcome outcome;
    outcome.numbers = read_numbers(numbers_file(folder, row.id));
    outcome.judgement = {.verdict = *verdict, .seeds = row.seeds, .value = row.value, .reason = row.reason};
    // The numbers are written before the row: a folder whose writer was ended in between, or that was copied in part.
    const bool is_judged = *verdict != ClaimVerdict::undecided || row.value;
    if (const std::size_t results = outcome.results().size();
        is_judged && results != static_cast<std::size_t>(row.seeds))
      return fmt::format("numbers/{}.csv has {} results where the row has {} seeds; {}", row.id, results, row.seeds,
                         again);
    if (row.low && row.high) outcome.judgement.interval = MeanInterval{row.value.value_or(0), *row.low, *row.high};
    outcome.seconds = row.seconds;
    outcome.command = row.command;
    outcome.runs.resize(claim.cells.size());
    outcome.claim = &into.claims.emplace_back(std::move(claim));
    into.outcomes.push_back(std::move(outcome));
    return std::nullopt;
  } catch (const Error& error) {
    return error.lines().front();
  }
}

std::string conflicts_markdown(std::span<const ClaimOutcome> outcomes, const std::string& folder) {
  std::string text;
  for (const ClaimDispute& dispute : disputes(outcomes)) {
    text += fmt::format(
        "\n### {0}\n\n![{0}](pictures/{1}.svg)\n\n| position | source | quantity meant | verdict | value | 95 % "
        "interval |\n"
        "| --- | --- | --- | --- | --- | --- |\n",
        dispute.about, dispute_word(dispute.about));
    for (const ClaimOutcome* outcome : dispute.positions)
      text += fmt::format("| {} ([{}]({})) | {} | {} | {} | {} | {} |\n", escaped(outcome->claim->statement),
                          outcome->claim->id, link_from(folder, outcome->claim->path), escaped(outcome->claim->source),
                          escaped(outcome->claim->conflict.quantity), name_of(outcome->judgement.verdict),
                          value_text(outcome->judgement.value), interval_text(outcome->judgement));
  }
  return text.empty() ? text : "\n## Where the literature disagrees\n" + text;
}

}  // namespace

std::span<const Column> claims_columns() { return columns; }

std::vector<VerdictRow> read_verdicts(const std::string& path) {
  std::vector<VerdictRow> rows;
  constexpr std::array<std::string_view, 12> wanted{"id",      "verdict", "length", "file", "checksum", "reason",
                                                    "command", "value",   "low",    "high", "seeds",    "seconds"};
  read_csv_rows(path, columns, wanted, [&](const CsvRow& row) {
    const auto text = [&](std::size_t i) { return std::string(row.text(i)); };
    rows.push_back({text(0), text(1), text(2), text(3), text(4), text(5), text(6), row.optional_number(7),
                    row.optional_number(8), row.optional_number(9), row.integer(10), row.number(11)});
  });
  return rows;
}

EarlierOutcomes earlier_outcomes(const std::string& folder, std::span<const ClaimOutcome> replaced) {
  EarlierOutcomes earlier;
  const std::string path = folder + "/claims.csv";
  if (std::error_code error; !fs::exists(path, error)) return earlier;
  std::set<std::string, std::less<>> now;
  for (const ClaimOutcome& outcome : replaced) now.insert(outcome.claim->id);
  try {
    for (const VerdictRow& row : read_verdicts(path)) {
      if (now.contains(row.id)) continue;
      if (const auto why = restore(row, folder, earlier))
        earlier.dropped.push_back(fmt::format("{}: {}", row.id, *why));
    }
  } catch (const Error& error) {
    earlier.dropped.push_back(error.lines().front());
  }
  return earlier;
}

std::vector<ClaimOutcome> joined(std::span<const ClaimOutcome> now, std::span<const ClaimOutcome> earlier) {
  std::vector<ClaimOutcome> all(now.begin(), now.end());
  all.insert(all.end(), earlier.begin(), earlier.end());
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.claim->id < b.claim->id; });
  return all;
}

std::vector<ClaimDispute> disputes(std::span<const ClaimOutcome> outcomes) {
  std::vector<ClaimDispute> result;
  for (const ClaimOutcome& outcome : outcomes) {
    const std::string& about = outcome.claim->conflict.about;
    if (about.empty()) continue;
    auto found =
        std::find_if(result.begin(), result.end(), [&](const auto& dispute) { return dispute.about == about; });
    if (found == result.end()) found = result.insert(found, {about, {}});
    found->positions.push_back(&outcome);
  }
  return result;
}

std::vector<std::string> topics_of(std::span<const ClaimOutcome> outcomes) {
  std::vector<std::string> topics;
  for (const ClaimOutcome& outcome : outcomes)
    if (std::find(topics.begin(), topics.end(), outcome.claim->topic) == topics.end())
      topics.push_back(outcome.claim->topic);
  return topics;
}

std::string topic_word(const std::string& topic) { return "topic-" + word_of(topic); }
std::string dispute_word(const std::string& about) { return "conflict-" + word_of(about); }

std::string made_by(std::span<const ClaimOutcome> outcomes) {
  std::vector<std::pair<std::string, int>> commands;
  for (const ClaimOutcome& outcome : outcomes) {
    const auto found = std::find_if(commands.begin(), commands.end(),
                                    [&](const auto& command) { return command.first == outcome.command; });
    if (found == commands.end())
      commands.emplace_back(outcome.command, 1);
    else
      ++found->second;
  }
  if (commands.size() == 1) return fmt::format("`{}`", commands.front().first);
  std::string text;
  for (const auto& [command, count] : commands)
    text += fmt::format("{}`{}` ({} of them)", text.empty() ? "" : ", ", command, count);
  return text;
}

bool is_remarkable(const ClaimOutcome& outcome) {
  return outcome.judgement.verdict == ClaimVerdict::undecided || outcome.judgement.verdict != outcome.claim->expected;
}

std::string link_from(const std::string& folder, const std::string& file) {
  return fs::absolute(file).lexically_normal().lexically_relative(fs::absolute(folder).lexically_normal()).string();
}

std::string outcomes_markdown(std::span<const ClaimOutcome> outcomes, const std::string& folder) {
  std::string text = fmt::format(
      "# Claims\n\n{} claims, made by {}. {}. One number for each claim, its mean over the seeds and its 95 % Student "
      "interval. A claim's name leads to its file, which says what is run and how the number is taken; its verdict to "
      "the numbers of the single runs, each with run folder, file, column, step and block. Rows marked \"quick\" have "
      "fewer seeds, steps and depths. In the pictures the number must lie in the grey for `reproduced` and in the "
      "hatched part for `refuted`. `index.html` has all of it on one page.\n",
      outcomes.size(), made_by(outcomes), count_of_verdicts(outcomes));
  for (const std::string& topic : topics_of(outcomes)) {
    text += fmt::format(
        "\n## {0}\n\n![{0}](pictures/{1}.svg)\n\n| claim | source | verdict | value | 95 % interval | seeds | "
        "criterion |\n"
        "| --- | --- | --- | --- | --- | --- | --- |\n",
        topic, topic_word(topic));
    for (const ClaimOutcome& outcome : outcomes) {
      const Claim& claim = *outcome.claim;
      if (claim.topic != topic) continue;
      text += fmt::format("| [**{}**]({}) {} | {} | [{}](numbers/{}.csv){} | {} | {} | {} | {} |\n", claim.id,
                          link_from(folder, claim.path), escaped(claim.statement), escaped(claim.source),
                          name_of(outcome.judgement.verdict), claim.id,
                          claim.length == ClaimLength::quick ? " (quick)" : "", value_text(outcome.judgement.value),
                          interval_text(outcome.judgement), outcome.judgement.seeds, claim.criterion.words());
    }
  }
  text += conflicts_markdown(outcomes, folder);
  if (std::any_of(outcomes.begin(), outcomes.end(), is_remarkable)) text += "\n## Undecided, or not as expected\n\n";
  for (const ClaimOutcome& outcome : outcomes)
    if (is_remarkable(outcome))
      text += fmt::format("- **{}**: {}, expected {}. {}.\n", outcome.claim->id, name_of(outcome.judgement.verdict),
                          name_of(outcome.claim->expected), outcome.judgement.reason);
  return text;
}

void write_outcomes(std::span<const ClaimOutcome> outcomes, const std::string& folder) {
  create_folders(folder + "/numbers");
  std::string rows = header_line(columns) + '\n';
  for (const ClaimOutcome& outcome : outcomes) {
    const ClaimJudgement& judgement = outcome.judgement;
    const auto end = [&](double MeanInterval::*which) {
      return judgement.interval ? Cell{(*judgement.interval).*which} : Cell{};
    };
    const Claim& claim = *outcome.claim;
    const std::array<Cell, columns.size()> cells{word(claim.id),
                                                 word(claim.topic),
                                                 std::string(name_of(judgement.verdict)),
                                                 std::string(name_of(claim.expected)),
                                                 cell(judgement.value),
                                                 end(&MeanInterval::low),
                                                 end(&MeanInterval::high),
                                                 judgement.seeds,
                                                 outcome.seconds,
                                                 static_cast<std::int64_t>(outcome.runs.size()),
                                                 std::string(name_of(claim.length)),
                                                 word(claim.path),
                                                 word(claim.checksum),
                                                 word(judgement.reason),
                                                 word(outcome.command)};
    rows += line_of(cells);
    write_numbers(outcome, folder);
  }
  write_file_atomically(folder + "/claims.csv", rows);
  write_file_atomically(folder + "/claims.md", outcomes_markdown(outcomes, folder));
}

}  // namespace gradflow
