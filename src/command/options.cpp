#include <CLI/CLI.hpp>

#include "command/command.h"

namespace gradflow {

void add_set_option(CLI::App& command, std::vector<std::string>& overrides) {
  command
      .add_option("--set", overrides,
                  "overrides one key of the configuration; repeatable\n"
                  "KEY is a full path (model.placement) or an ending that is unique (placement);\n"
                  "the later wins; values are JSON, strings may stand without quotes")
      ->type_name("KEY=VALUE")
      ->type_size(1)
      ->allow_extra_args(false);
}

Error named_by_options(const Error& error, const std::vector<OptionForKey>& options) {
  std::vector<std::string> lines = error.lines();
  for (std::string& line : lines)
    for (const OptionForKey& each : options)
      if (const std::string written = "--set " + each.key; line.starts_with(written + ":"))
        line.replace(0, written.size(), each.option);
  return Error(std::move(lines), error.exit());
}

}  // namespace gradflow
