#include <CLI/CLI.hpp>
#include <iostream>

#include "command/command.h"
#include "command/experiment.h"
#include "command/prepare.h"
#include "core/interrupt.h"

namespace gradflow {
namespace {

struct Options {
  std::string config;
  std::vector<std::string> overrides;
  std::string out;
  bool overwrite = false;
  bool resume = false;
  bool force = false;
  bool quiet = false;
  std::optional<std::int64_t> threads;
  std::string device;
};

Prepared prepared_run(const Options& options) {
  std::vector<std::string> overrides = options.overrides;
  std::vector<OptionForKey> given;
  if (options.threads) {
    overrides.push_back("compute.threads=" + std::to_string(*options.threads));
    given.push_back({"--threads", "compute.threads"});
  }
  if (!options.device.empty()) {
    overrides.push_back("compute.device=" + options.device);
    given.push_back({"--device", "compute.device"});
  }
  try {
    return prepare(options.config, overrides);
  } catch (const Error& error) {
    throw named_by_options(error, given);
  }
}

Exit run(const Options& options) {
  catch_interrupts();
  const Prepared prepared = prepared_run(options);
  const ExperimentResult result = run_experiment(prepared,
                                                 {.out = options.out,
                                                  .overwrite = options.overwrite,
                                                  .resume = options.resume,
                                                  .force = options.force,
                                                  .quiet = options.quiet},
                                                 std::cerr);
  if (!options.quiet) std::cout << result.table << std::flush;
  return result.exit;
}

}  // namespace

void add_run(CLI::App& program, Action& action) {
  CLI::App* command = program.add_subcommand("run", "trains one stack and writes its run folder");
  auto options = std::make_shared<Options>();
  command->add_option("CONFIG", options->config, "configuration file (JSON); {} is a valid one")->required();
  add_set_option(*command, options->overrides);
  command->add_option("--out", options->out, "run folder; without it results/NAME/ID below the current folder")
      ->type_name("DIR")
      ->check([](const std::string& folder) { return folder.empty() ? "needs the name of a folder" : ""; });
  CLI::Option* overwrite =
      command->add_flag("--overwrite", options->overwrite, "replaces a run that stands in the folder");
  command
      ->add_flag("--resume", options->resume,
                 "goes on from the newest checkpoint of an unfinished run; with a larger train.steps also of a "
                 "finished one")
      ->excludes(overwrite);
  command->add_flag("--force", options->force, "runs although the estimated memory exceeds what is free");
  command->add_flag("--quiet", options->quiet, "no progress, no table; errors and warnings only");
  command->add_option("--threads", options->threads, "threads, short for --set compute.threads=N")->type_name("N");
  command->add_option("--device", options->device, "cpu, cuda, cuda:N or auto, short for --set compute.device=D")
      ->type_name("D");
  command->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace gradflow
