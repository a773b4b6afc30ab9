#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "command/command.h"
#include "command/environment.h"
#include "core/build_info.h"
#include "core/error.h"

namespace {

using namespace gradflow;

void print_error(std::string_view line) { fmt::print(stderr, "gradflow: error: {}\n", line); }

constexpr std::string_view unwritable_output = "standard output: cannot be written; free some space or write elsewhere";

int code(Exit exit) { return static_cast<int>(exit); }

std::string version_text() {
  const BuildInfo& build = build_info();
  return fmt::format("gradflow {} (git {}), LibTorch {}", build.version, build.git_revision, libtorch_version());
}

/// What to say of a command line that names no command.
std::string wrong_start(const CLI::App& program, const CLI::ParseError& error) {
  const std::vector<std::string> rest = program.remaining();
  if (rest.empty() || rest.front().starts_with('-')) return fmt::format("{}; see gradflow --help", error.what());
  std::string commands;
  for (const CLI::App* command : program.get_subcommands([](const CLI::App*) { return true; }))
    commands += (commands.empty() ? "" : ", ") + command->get_name();
  return fmt::format("no command is called \"{}\"; there are {}", rest.front(), commands);
}

/// Runs the action and turns whatever it throws into lines on stderr and an exit code.
int run(const Action& action) {
  try {
    const Exit exit = action();
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code(exit);
    print_error(unwritable_output);
  } catch (const Error& error) {
    for (const std::string& line : error.lines()) print_error(line);
    return code(error.exit());
  } catch (const std::bad_alloc&) {
    print_error("not enough memory; lower model.depth, model.width or train.batch, or set compute.recompute to true");
  } catch (const std::exception& error) {
    if (std::ferror(stdout) != 0) {
      print_error(unwritable_output);
      return code(Exit::error);
    }
    // LibTorch's messages go on with a stack trace; their first line says what happened.
    const std::string_view what = error.what();
    print_error(fmt::format("unexpected: {}", what.substr(0, what.find('\n'))));
  }
  return code(Exit::error);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App program(
      "Gradient flow in deep residual stacks: trains one from a configuration file and records, layer by layer,\n"
      "what happens in it.",
      "gradflow");
  program.set_version_flag("--version", version_text, "prints version, git revision and LibTorch version");
  program.set_help_flag("-h,--help", "prints this help; every command has its own");
  program.footer(
      "Exit codes: 0 done, 1 configuration, file or environment, 2 command line, 3 the run stopped at a value that\n"
      "is not finite.");
  program.require_subcommand(0, 1);
  program.get_formatter()->column_width(24);

  Action action;
  add_run(program, action);
  add_validate(program, action);
  add_describe(program, action);
  add_schema(program, action);
  add_info(program, action);
  add_compare(program, action);
  add_collect(program, action);
  add_report(program, action);

  try {
    program.parse(argc, argv);
  } catch (const CLI::Success& help_or_version) {
    return program.exit(help_or_version);
  } catch (const CLI::ParseError& error) {
    const auto chosen = program.get_subcommands();
    print_error(chosen.empty() ? wrong_start(program, error)
                               : fmt::format("{}; see gradflow {} --help", error.what(), chosen.front()->get_name()));
    return code(Exit::usage);
  }
  if (!action) {
    fmt::print(stderr, "{}", program.help());
    return code(Exit::usage);
  }
  return run(action);
}
