#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/error.h"

namespace CLI {
class App;
}

namespace gradflow {

// The subcommands, one file each, all in one pattern:
//
//   namespace {
//   struct Options { std::string path; bool json = false; };   // what the command line says
//   Exit run(const Options& options) { ... }                     // throws Error for what cannot be done
//   }
//   void add_describe(CLI::App& program, Action& action) {
//     CLI::App* command = program.add_subcommand("describe", "what it does, in a line");
//     auto options = std::make_shared<Options>();
//     command->add_option("CONFIG", options->path, "configuration file (JSON)")->required()->type_name("");
//     command->callback([options, &action] { action = [options] { return run(*options); }; });
//   }
//
// The command line is read to its end before the action starts: a wrong one never begins to work. A new command is such
// a file, a line here and a line in main.cpp.

/// What the command line asks for; main runs it and ends with its exit code.
using Action = std::function<Exit()>;

void add_run(CLI::App& program, Action& action);
void add_validate(CLI::App& program, Action& action);
void add_describe(CLI::App& program, Action& action);
void add_probe(CLI::App& program, Action& action);
void add_schema(CLI::App& program, Action& action);
void add_info(CLI::App& program, Action& action);
void add_compare(CLI::App& program, Action& action);
void add_collect(CLI::App& program, Action& action);
void add_report(CLI::App& program, Action& action);
void add_sweep(CLI::App& program, Action& action);
void add_expand(CLI::App& program, Action& action);
void add_claims(CLI::App& program, Action& action);
void add_bench(CLI::App& program, Action& action);

/// The repeatable option --set KEY=VALUE, as `load_config` takes it.
void add_set_option(CLI::App& command, std::vector<std::string>& overrides);

/// An option that sets a key of the configuration: "--backend" for "compute.backend".
struct OptionForKey {
  std::string option;
  std::string key;
};

/// The same error, whose lines name the option where they name "--set KEY".
Error named_by_options(const Error& error, const std::vector<OptionForKey>& options);

}  // namespace gradflow
