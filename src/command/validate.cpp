#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "command/command.h"
#include "command/memory_demand.h"
#include "command/prepare.h"

namespace gradflow {
namespace {

struct Options {
  std::vector<std::string> paths;
  std::vector<std::string> overrides;
};

Exit run(const Options& options) {
  std::vector<std::string> faults;
  for (const std::string& path : options.paths) {
    try {
      const Prepared prepared = prepare(path, options.overrides);
      if (const auto refusal = memory_refusal(prepared.config, prepared.device)) throw Error(path + ": " + *refusal);
      fmt::print("{}: ok\n", path);
    } catch (const Error& error) {
      faults.insert(faults.end(), error.lines().begin(), error.lines().end());
    }
  }
  if (!faults.empty()) throw Error(std::move(faults));
  return Exit::done;
}

}  // namespace

void add_validate(CLI::App& program, Action& action) {
  CLI::App* command =
      program.add_subcommand("validate", "says what is wrong with configuration files, without training");
  auto options = std::make_shared<Options>();
  command->add_option("CONFIG", options->paths, "configuration files (JSON)")->required()->type_name("");
  add_set_option(*command, options->overrides);
  command->footer(
      "Gives the verdict that `run` would give before training: reads the data, looks for the device. Prints\n"
      "\"FILE: ok\" for each good file on standard output, one line for each fault on standard error.");
  command->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace gradflow
