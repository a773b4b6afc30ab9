#include "core/process.h"

#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cerrno>
#include <chrono>
#include <fstream>

#include "core/files.h"
#include "core/interrupt.h"

extern char** environ;

namespace gradflow {

std::vector<std::string> command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> arguments;
  for (std::string argument; std::getline(file, argument, '\0');) arguments.push_back(argument);
  return arguments;
}

MeasuredEnd run_process(const std::string& program, const std::vector<std::string>& arguments) {
  std::vector<char*> words;
  for (const std::string& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  const auto start = std::chrono::steady_clock::now();
  // A group of its own: Ctrl-C in a terminal is for this process, which decides about the other.
  posix_spawnattr_t own_group;
  posix_spawnattr_init(&own_group);
  posix_spawnattr_setflags(&own_group, POSIX_SPAWN_SETPGROUP);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, program.c_str(), nullptr, &own_group, words.data(), environ);
  posix_spawnattr_destroy(&own_group);
  if (error != 0) throw file_error(program, "cannot be started", error);
  int status = 0;
  rusage usage{};
  while (true) {
    if (interrupted() != 0) ::kill(pid, SIGKILL);
    if (wait4(pid, &status, 0, &usage) >= 0) break;
    if (errno != EINTR) throw file_error(program, "cannot be waited for", errno);
  }
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(),
          std::int64_t{1024} * usage.ru_maxrss};
}

}  // namespace gradflow
