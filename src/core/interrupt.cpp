#include "core/interrupt.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace gradflow {
namespace {

constexpr std::int64_t patience = 2;  // seconds

std::atomic<int> arrived{0};
std::atomic<std::int64_t> arrived_at{0};  // seconds of the monotonic clock
std::atomic<bool> second_sigint_ends{true};
static_assert(std::atomic<int>::is_always_lock_free, "a handler may touch nothing else");

std::int64_t now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);  // a handler may call it
  return time.tv_sec;
}

void remember(int signal) {
  int none = 0;
  if (arrived == 0) arrived_at = now();
  arrived.compare_exchange_strong(none, signal);
  // Somebody who presses Ctrl-C after an interruption does not want to wait for the end of a step.
  if (second_sigint_ends) ::signal(SIGINT, SIG_DFL);
}

}  // namespace

void catch_interrupts(SecondSigint second) {
  second_sigint_ends = second == SecondSigint::ends;
  struct sigaction action = {};
  action.sa_handler = remember;
  sigemptyset(&action.sa_mask);
  for (const int signal : interrupting_signals) {
    struct sigaction before = {};
    sigaction(signal, nullptr, &before);
    if (signal != SIGHUP || before.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);
  }
}

int interrupted() { return arrived.load(std::memory_order_relaxed); }

void give_up_if_interrupted() {
  if (interrupted() != 0) throw Interrupted();
}

void give_up_if_overdue() {
  if (interrupted() != 0 && now() - arrived_at > patience) throw Interrupted();
}

void end_by_signal() {
  const int signal = interrupted();
  ::signal(signal, SIG_DFL);
  ::raise(signal);
  ::_exit(128 + signal);  // where it is blocked
}

void forget_interrupt() { arrived = 0; }

const char* signal_name(int signal) {
  switch (signal) {
    case SIGINT: return "SIGINT";
    case SIGTERM: return "SIGTERM";
    case SIGUSR1: return "SIGUSR1";
    case SIGHUP: return "SIGHUP";
    default: return "another signal";
  }
}

}  // namespace gradflow
