#include "config/schema.h"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "command/command.h"

namespace gradflow {
namespace {

Exit run() {
  std::puts(schema().dump(2).c_str());
  return Exit::done;
}

}  // namespace

void add_schema(CLI::App& program, Action& action) {
  CLI::App* command = program.add_subcommand("schema", "prints the JSON Schema of a configuration file");
  command->footer(
      "JSON Schema 2020-12, for editors that complete and check as one types: name it in the editor's\n"
      "settings for the folder of configurations. What keys mean together, only `gradflow validate` checks.");
  command->callback([&action] { action = run; });
}

}  // namespace gradflow
