#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "command/command.h"
#include "command/environment.h"
#include "command/failure.h"
#include "core/build_info.h"
#include "core/error.h"
#include "core/interrupt.h"

namespace {

using namespace gradflow;

/// On standard error, or nowhere when its terminal is gone: that must not end the program another way.
void say(const std::string& text) { std::fputs(text.c_str(), stderr); }

void print_error(std::string_view line) { say(fmt::format("gradflow: error: {}\n", line)); }

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

/// `ended`, or an error when standard output could not be written.
int after_output(int ended) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return ended;
  print_error(unwritable_output);
  return code(Exit::error);
}

/// Runs the action and turns whatever it throws into lines on stderr and an exit code.
int run(const Action& action) {
  try {
    return after_output(code(action()));
  } catch (const Interrupted&) {
    say(fmt::format("gradflow: interrupted by {} before anything was written\n", signal_name(interrupted())));
    return code(Exit::interrupted);
  } catch (const std::exception& failure) {
    const auto* error = dynamic_cast<const Error*>(&failure);
    if (error == nullptr && std::ferror(stdout) != 0) {
      print_error(unwritable_output);
      return code(Exit::error);
    }
    for (const std::string& line : failure_lines(failure)) print_error(line);
    if (error != nullptr) return code(error->exit());
  }
  return code(Exit::error);
}

/// What the command line asks for; the exit code.
int command_line(int argc, char** argv) {
  CLI::App program(
      "Gradient flow in deep residual stacks: trains one from a configuration file and records, layer by layer,\n"
      "what happens in it.",
      "gradflow");
  program.set_version_flag("--version", version_text, "prints version, git revision and LibTorch version");
  program.set_help_flag("-h,--help", "prints this help; every command has its own");
  program.footer(
      "Exit codes: 0 done, 1 configuration, file or environment, 2 command line, 3 the run stopped at a value that\n"
      "is not finite, 4 some run of a sweep failed, 75 interrupted by SIGINT, SIGTERM, SIGUSR1 or\n"
      "SIGHUP (a closed terminal): --resume goes on. Commands that keep nothing to go on from end by the signal "
      "itself.");
  program.require_subcommand(0, 1);
  program.get_formatter()->column_width(24);

  Action action;
  add_run(program, action);
  add_validate(program, action);
  add_describe(program, action);
  add_probe(program, action);
  add_schema(program, action);
  add_info(program, action);
  add_compare(program, action);
  add_collect(program, action);
  add_report(program, action);
  add_sweep(program, action);
  add_expand(program, action);
  add_claims(program, action);
  add_bench(program, action);

  try {
    program.parse(argc, argv);
  } catch (const CLI::Success& help_or_version) {
    return after_output(program.exit(help_or_version));
  } catch (const CLI::ParseError& error) {
    const auto chosen = program.get_subcommands();
    print_error(chosen.empty() ? wrong_start(program, error)
                               : fmt::format("{}; see gradflow {} --help", error.what(), chosen.front()->get_name()));
    return code(Exit::usage);
  }
  if (!action) {
    say(program.help());
    return code(Exit::usage);
  }
  return run(action);
}

}  // namespace

int main(int argc, char** argv) {
  const int code = command_line(argc, argv);
  std::fflush(nullptr);
  // Without the destructors of statics: LibTorch's take thousands of operators out of its registry one by one, which is
  // a third of what a short command takes.
  std::quick_exit(code);
}
