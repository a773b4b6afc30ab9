#pragma once

#include <exception>

namespace gradflow {

/// Thrown where work is given up because a caught signal has arrived.
struct Interrupted : std::exception {
  const char* what() const noexcept override { return "interrupted"; }
};

/// From now on SIGINT, SIGTERM and SIGUSR1 no longer end the process: they are remembered, and the work that goes on
/// asks `interrupted` between two steps. After the first of them a SIGINT ends the process at once, as it would have
/// without this call. System calls that wait are interrupted (EINTR), not restarted.
void catch_interrupts();

/// The first of the caught signals that arrived (SIGINT, SIGTERM or SIGUSR1), 0 while none did.
int interrupted();

/// Throws Interrupted when a caught signal has arrived: for work that is done again anyhow.
void give_up_if_interrupted();

/// Throws Interrupted when a caught signal arrived two seconds ago or earlier: for work that should be finished if that
/// does not take long, asked every now and then.
void give_up_if_overdue();

/// While one lives, `give_up_if_overdue` does not throw: for work that can be neither undone nor made again.
class Steadfast {
 public:
  Steadfast();
  ~Steadfast();
  Steadfast(const Steadfast&) = delete;
  Steadfast& operator=(const Steadfast&) = delete;
};

/// "SIGINT", "SIGTERM", "SIGUSR1"; "another signal" for others.
const char* signal_name(int signal);

/// Forgets what arrived, for a process that was forked from an interrupted one, and for tests.
void forget_interrupt();

}  // namespace gradflow
