#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "command/command.h"
#include "command/description_text.h"
#include "command/prepare.h"
#include "config/identity.h"
#include "kernels/backend.h"
#include "model/description.h"
#include "output/run_folder.h"

namespace gradflow {
namespace {

struct Options {
  std::string path;
  std::vector<std::string> overrides;
  bool json = false;
};

Exit run(const Options& options) {
  const Prepared prepared = prepare(options.path, options.overrides);
  const std::string hash = data_files_hash(prepared.config);
  const Subject subject{.config = prepared.config,
                        .layout = make_layout(prepared.config),
                        .facts = prepared.source->facts(),
                        .files_hash = hash,
                        .folder = default_run_folder(prepared.config.name, run_id(prepared.config, hash)),
                        .backend = backend_in_words(prepared.config, prepared.device)};
  fmt::print("{}", options.json ? description_json(subject).dump(2) + "\n" : description_text(subject));
  return Exit::done;
}

}  // namespace

void add_describe(CLI::App& program, Action& action) {
  CLI::App* command = program.add_subcommand("describe", "says what a configuration builds, without training");
  auto options = std::make_shared<Options>();
  command->add_option("CONFIG", options->path, "configuration file (JSON)")->required()->type_name("");
  add_set_option(*command, options->overrides);
  command->add_flag("--json", options->json, "the same content as JSON, for scripts");
  command->footer(
      "Prints every sub-layer as a formula, the norms, constants (α, β, ω), parameters by group with their initial\n"
      "standard deviations, what weight decay acts on, an estimate of the memory, and every key with its value.");
  command->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace gradflow
