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

}  // namespace gradflow
