#include "core/process.h"

#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cerrno>
#include <chrono>

#include "core/files.h"

extern char** environ;

namespace gradflow {

ProcessEnd run_process(const std::string& program, const std::vector<std::string>& arguments) {
  std::vector<char*> words;
  for (const std::string& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  const auto start = std::chrono::steady_clock::now();
  pid_t pid = 0;
  if (const int error = posix_spawn(&pid, program.c_str(), nullptr, nullptr, words.data(), environ); error != 0)
    throw file_error(program, "cannot be started", error);
  int status = 0;
  rusage usage{};
  while (wait4(pid, &status, 0, &usage) < 0)
    if (errno != EINTR) throw file_error(program, "cannot be waited for", errno);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(),
          std::int64_t{1024} * usage.ru_maxrss};
}

}  // namespace gradflow
