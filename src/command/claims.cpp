#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "claims/claim.h"
#include "claims/outcome.h"
#include "claims/verdict_table.h"
#include "command/check_pool.h"
#include "command/command.h"
#include "command/run_pool.h"
#include "core/files.h"
#include "core/interrupt.h"
#include "core/numbers.h"
#include "output/log.h"
#include "output/text_table.h"
#include "report/claims_page.h"

namespace gradflow {
namespace {

struct Options {
  std::vector<std::string> ids;
  std::string from = "configs/claims";
  std::string out = "results/claims";
  std::int64_t jobs = 0;
  bool all = false;
  bool quick = false;
  bool json = false;
  bool force = false;
};

ClaimLength length_of(const Options& options) { return options.quick ? ClaimLength::quick : ClaimLength::full; }

std::string setup_of(const Claim& claim) {
  if (claim.check) return fmt::format("check {}", claim.check->row->name);
  return fmt::format("{} runs", claim.cells.size());
}

Json json_of(const Claim& claim) {
  return {{"id", claim.id},
          {"topic", claim.topic},
          {"statement", claim.statement},
          {"source", claim.source},
          {"note", claim.note},
          {"criterion", claim.criterion.words()},
          {"expected", name_of(claim.expected)},
          {"seeds", claim.seeds},
          {"runs", claim.cells.size()},
          {"seconds", claim.seconds},
          {"file", claim.path}};
}

Exit list(const Options& options) {
  const std::vector<Claim> claims = load_claims(claim_files(options.from), length_of(options));
  if (options.json) {
    Json json = Json::array();
    for (const Claim& claim : claims) json.push_back(json_of(claim));
    fmt::print("{}\n", json.dump(2));
    return Exit::done;
  }
  TextTable table({"claim", "topic", "setup", "seeds", "seconds", "expected"});
  double seconds = 0;
  for (const Claim& claim : claims) {
    seconds += claim.seconds;
    table.add({claim.id, claim.topic, setup_of(claim), std::to_string(claim.seeds.size()),
               significant(claim.seconds, 3), std::string(name_of(claim.expected))});
  }
  fmt::print("{}\n{} claims, {} minutes of one core if none shares its runs with another\n", table.text(),
             claims.size(), significant(seconds / 60, 2));
  return Exit::done;
}

/// The claim for a person.
std::string description(const Claim& claim) {
  TextTable table(2);
  table.add({"source", claim.source});
  table.add({"topic", claim.topic});
  table.add(
      {"setup", claim.check ? fmt::format("{}: {}", setup_of(claim), claim.check->row->meaning) : setup_of(claim)});
  if (!claim.base.empty()) table.add({"base", claim.base});
  for (const auto& [key, values] : claim.axes) table.add({key, values});
  if (claim.check) table.add({"seeds", std::to_string(claim.seeds.size())});
  if (claim.statistic)
    table.add({"statistic",
               fmt::format("{}: {}", row_of(claim.statistic->kind).name, row_of(claim.statistic->kind).meaning)});
  // As the file says it: which column, at which step and block, of which runs.
  if (claim.statistic) table.add({"of", Json::parse(read_file(claim.path))["statistic"].dump()});
  table.add({"criterion", claim.criterion.words()});
  table.add({"expected", std::string(name_of(claim.expected))});
  table.add({"cost", significant(claim.seconds, 3) + " s of one core"});
  table.add({"file", claim.path});
  std::string text = claim.id + ": " + claim.statement + "\n\n" + table.text();
  if (!claim.note.empty()) text += '\n' + claim.note + '\n';
  return text;
}

Exit show(const Options& options) {
  const std::vector<Claim> claims = load_claims(claim_files_named(options.ids, options.from), length_of(options));
  if (options.json) {
    Json json = Json::array();
    for (const Claim& claim : claims) json.push_back(json_of(claim));
    fmt::print("{}\n", json.dump(2));
    return Exit::done;
  }
  for (std::size_t i = 0; i < claims.size(); ++i) fmt::print("{}{}", i == 0 ? "" : "\n", description(claims[i]));
  return Exit::done;
}

constexpr const char* quick_folder = "results/claims-quick";

/// How the command would be written again.
std::string command_of(const Options& options) {
  const Options defaults;
  std::string text = "gradflow claims run";
  for (const std::string& id : options.ids) text += ' ' + id;
  if (options.all) text += " --all";
  if (options.quick) text += " --quick";
  if (options.from != defaults.from) text += " --from " + options.from;
  if (options.jobs != defaults.jobs) text += fmt::format(" --jobs {}", options.jobs);
  if (options.out != (options.quick ? quick_folder : defaults.out)) text += " --out " + options.out;
  return text;
}

Exit run(const Options& options) {
  if (options.all == !options.ids.empty())
    throw Error("claims run: name claims, or write --all; gradflow claims list shows them", Exit::usage);
  const std::vector<Claim> claims = load_claims(
      options.all ? claim_files(options.from) : claim_files_named(options.ids, options.from), length_of(options));

  std::vector<Config> configs;
  for (const Claim& claim : claims) configs.insert(configs.end(), claim.cells.begin(), claim.cells.end());
  Log log(std::cerr, false);
  catch_interrupts();
  const std::vector<PooledRun> pooled = run_pool(configs, options.out + "/runs", options.jobs, options.force, log);

  const std::vector<std::vector<CheckNumber>> checked = run_checks(claims, options.jobs);

  const std::string command = command_of(options);
  std::vector<ClaimOutcome> outcomes;
  auto next = pooled.begin();
  for (std::size_t i = 0; i < claims.size(); ++i) {
    std::vector<ClaimRun> runs;
    for (std::size_t cell = 0; cell < claims[i].cells.size(); ++cell, ++next)
      runs.push_back({next->folder, next->failure});
    outcomes.push_back(claims[i].check ? judge_check(claims[i], checked[i]) : judge_runs(claims[i], runs));
    outcomes.back().command = command;
  }
  const EarlierOutcomes earlier = earlier_outcomes(options.out, outcomes);
  for (const std::string& dropped : earlier.dropped) log.warning("left out of the table: " + dropped);
  const std::vector<ClaimOutcome> all = joined(outcomes, earlier.outcomes);
  write_outcomes(all, options.out);
  write_claims_report(all, options.out);
  if (options.json)
    fmt::print("{}\n", outcomes_json(outcomes).dump(2));
  else
    fmt::print("{}\ntable, pictures and numbers in {}\n", outcomes_text(outcomes), options.out);
  const bool failed = std::any_of(outcomes.begin(), outcomes.end(),
                                  [](const ClaimOutcome& outcome) { return !outcome.failure.empty(); });
  return failed ? Exit::cell_failed : Exit::done;
}

CLI::App* add_part(CLI::App& claims, Options& options, const std::string& name, const std::string& help) {
  CLI::App* command = claims.add_subcommand(name, help);
  command->add_option("--from", options.from, "folder of the claim files")->type_name("DIR")->capture_default_str();
  command->add_flag("--quick", options.quick, "fewer seeds, steps and depths, as the files say; the same criteria");
  command->add_flag("--json", options.json, "JSON on standard output");
  return command;
}

}  // namespace

void add_claims(CLI::App& program, Action& action) {
  CLI::App* claims = program.add_subcommand(
      "claims", "statements of the literature as experiments, each with a verdict computed from its runs");
  claims->require_subcommand(1);
  auto options = std::make_shared<Options>();
  add_part(*claims, *options, "list", "every claim, its setup and its cost")->callback([options, &action] {
    action = [options] { return list(*options); };
  });
  CLI::App* shown = add_part(*claims, *options, "show", "what a claim says, what is run, what would refute it");
  shown->add_option("ID", options->ids, "claims by their names, or paths of claim files")->required()->type_name("");
  shown->callback([options, &action] { action = [options] { return show(*options); }; });

  CLI::App* command = add_part(*claims, *options, "run", "makes the runs that are missing and judges the claims");
  command->add_option("ID", options->ids, "claims by their names, or paths of claim files")->type_name("");
  command->add_flag("--all", options->all, "every claim of the folder");
  command
      ->add_option("--out", options->out,
                   "folder of the runs (DIR/runs, shared by all claims), the table and its numbers; with --quick\n"
                   "another: results/claims-quick")
      ->type_name("DIR")
      ->capture_default_str();
  command->add_option("--jobs", options->jobs, "runs at the same time; 0: one a core, fewer where memory would not do")
      ->type_name("N")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str();
  command->add_flag("--force", options->force, "runs although the estimated memory exceeds what is free");
  command->footer(
      "Runs that are finished are not made again, and the table keeps the verdicts of claims that are not named now.\n"
      "Exit code 4 when a run failed; its claims are undecided then.");
  command->callback([options, command, &action] {
    // The full-length verdicts are not replaced by those of fewer seeds.
    if (options->quick && command->count("--out") == 0) options->out = quick_folder;
    action = [options] { return run(*options); };
  });
}

}  // namespace gradflow
