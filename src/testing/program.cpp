#include "testing/program.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <sstream>
#include <stdexcept>

namespace gradflow::testing {
namespace {

int memory_file(const char* name) {
  const int descriptor = memfd_create(name, MFD_CLOEXEC);
  if (descriptor < 0) throw std::runtime_error("no file in memory for the output of a program");
  return descriptor;
}

std::string content_of(int descriptor) {
  std::string text(static_cast<std::size_t>(lseek(descriptor, 0, SEEK_END)), '\0');
  if (pread(descriptor, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
    throw std::runtime_error("the output of a program cannot be read");
  return text;
}

}  // namespace

std::vector<std::string> Outcome::error_lines() const {
  std::istringstream text(err);
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

RunningProgram::RunningProgram(const std::string& program, const std::vector<std::string>& arguments,
                               const Surroundings& surroundings)
    : out_(memory_file("out")), err_(memory_file("err")) {
  std::vector<std::string> words;
  if (!surroundings.shell.empty()) words = {"/bin/sh", "-c", surroundings.shell + "; exec \"$0\" \"$@\""};
  words.push_back(program);
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_ = fork();
  if (pid_ < 0) throw std::runtime_error("no new process");
  if (pid_ > 0) return;
  // Between fork and exec only calls that are safe there.
  const int nothing = open("/dev/null", O_RDONLY);
  if (nothing >= 0 && dup2(nothing, STDIN_FILENO) >= 0 && dup2(out_, STDOUT_FILENO) >= 0 &&
      dup2(err_, STDERR_FILENO) >= 0 && (surroundings.folder.empty() || chdir(surroundings.folder.c_str()) == 0))
    execv(argv[0], argv.data());
  _exit(127);
}

RunningProgram::~RunningProgram() {
  if (pid_ > 0) {
    kill(SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  close(out_);
  close(err_);
}

bool RunningProgram::runs() const {
  siginfo_t state{};
  return waitid(P_PID, static_cast<id_t>(pid_), &state, WEXITED | WNOHANG | WNOWAIT) == 0 && state.si_pid == 0;
}

void RunningProgram::kill(int signal) const { ::kill(pid_, signal); }

Outcome RunningProgram::wait() {
  int status = 0;
  rusage usage{};
  wait4(pid_, &status, 0, &usage);
  pid_ = -1;
  return {.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
          .out = content_of(out_),
          .err = content_of(err_),
          .peak_memory = std::int64_t{usage.ru_maxrss} * 1024};
}

}  // namespace gradflow::testing
