#include "core/interrupt.h"

#include <signal.h>

#include <atomic>

namespace gradflow {
namespace {

std::atomic<int> arrived{0};
static_assert(std::atomic<int>::is_always_lock_free, "a handler may touch nothing else");

void remember(int signal) {
  int none = 0;
  arrived.compare_exchange_strong(none, signal);
  // Somebody who presses Ctrl-C after an interruption does not want to wait for the end of a step.
  ::signal(SIGINT, SIG_DFL);
}

}  // namespace

void catch_interrupts() {
  struct sigaction action = {};
  action.sa_handler = remember;
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) sigaction(signal, &action, nullptr);
}

int interrupted() { return arrived.load(std::memory_order_relaxed); }

void forget_interrupt() { arrived = 0; }

const char* signal_name(int signal) {
  switch (signal) {
    case SIGINT: return "SIGINT";
    case SIGTERM: return "SIGTERM";
    case SIGUSR1: return "SIGUSR1";
    default: return "another signal";
  }
}

}  // namespace gradflow
