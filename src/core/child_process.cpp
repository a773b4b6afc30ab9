#include "core/child_process.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/interrupt.h"

namespace gradflow {
namespace {

/// The ends that this process keeps. A child closes those to its elder sisters: else they would not notice when this
/// process closes theirs.
std::vector<int>& kept_ends() {
  static std::vector<int> ends;
  return ends;
}

Error no_process(int reason) {
  return Error("no other process can be started (" + std::generic_category().message(reason) +
               "); use fewer --jobs or raise `ulimit -u`");
}

/// The rest of a child's life.
[[noreturn]] void live(const std::function<void(Channel&)>& work, int descriptor, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);  // it ended before it could be asked for
  for (const int end : kept_ends()) ::close(end);
  kept_ends().clear();
  int code = 1;
  try {
    Channel channel(descriptor);
    work(channel);
    code = 0;
  } catch (...) {
    // The parent sees the code; whoever has more to say sends it.
  }
  // Not exit: what the parent has set up for its own end is not the child's to tear down.
  ::_exit(code);
}

}  // namespace

Channel::Channel(Channel&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

Channel& Channel::operator=(Channel&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

Channel::~Channel() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool Channel::send(std::string_view message) const {
  ssize_t sent;
  do sent = ::send(descriptor_, message.data(), message.size(), MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(message.size());
}

std::optional<std::string> Channel::receive() const {
  ssize_t size;
  do size = ::recv(descriptor_, nullptr, 0, MSG_PEEK | MSG_TRUNC);
  while (size < 0 && errno == EINTR);
  if (size <= 0) return std::nullopt;
  std::string message(static_cast<std::size_t>(size), '\0');
  do size = ::recv(descriptor_, message.data(), message.size(), 0);
  while (size < 0 && errno == EINTR);
  if (size <= 0) return std::nullopt;
  return message;
}

void Channel::close_sending() const { ::shutdown(descriptor_, SHUT_WR); }

std::string ProcessEnd::words() const {
  if (signal == 0) return "exit code " + std::to_string(code);
  return "signal " + std::to_string(signal) + " (" + ::strsignal(signal) + ")";
}

ChildProcess::ChildProcess(const std::function<void(Channel&)>& work) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) throw no_process(errno);
  std::fflush(nullptr);  // what stands in a buffer would be written twice
  const pid_t parent = ::getpid();
  // A signal for the child must not reach it before it has forgotten what its parent got.
  sigset_t caught, before;
  sigemptyset(&caught);
  for (const int signal : interrupting_signals) sigaddset(&caught, signal);
  ::pthread_sigmask(SIG_BLOCK, &caught, &before);
  const pid_t pid = ::fork();
  if (pid == 0) forget_interrupt();
  const int reason = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) {
    ::close(ends[0]);
    ::close(ends[1]);
    throw no_process(reason);
  }
  if (pid == 0) {
    ::close(ends[0]);
    live(work, ends[1], parent);
  }
  ::close(ends[1]);
  pid_ = pid;
  channel_ = Channel(ends[0]);
  kept_ends().push_back(ends[0]);
}

ChildProcess::~ChildProcess() {
  std::erase(kept_ends(), channel_.descriptor());
  if (pid_ < 0) return;
  send_signal(SIGKILL);
  wait();
}

void ChildProcess::send_signal(int signal) const {
  if (pid_ > 0) ::kill(pid_, signal);
}

ProcessEnd ChildProcess::wait() {
  int status = 0;
  pid_t ended;
  do ended = ::waitpid(pid_, &status, 0);
  while (ended < 0 && errno == EINTR);
  pid_ = -1;
  ProcessEnd end;
  if (WIFEXITED(status)) end.code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
  return end;
}

}  // namespace gradflow
