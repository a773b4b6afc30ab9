#pragma once

#include <csignal>
#include <exception>

namespace gradflow {

/// Thrown where work is given up because a caught signal has arrived.
struct Interrupted : std::exception {
  const char* what() const noexcept override { return "interrupted"; }
};

/// The signals that `catch_interrupts` catches: Ctrl-C, the end of a job, a warning before that, a closed terminal.
inline constexpr int interrupting_signals[] = {SIGINT, SIGTERM, SIGUSR1, SIGHUP};

/// From now on these signals no longer end the process: they are remembered, and the work that goes on asks
/// `interrupted` between two steps. System calls that wait are interrupted (EINTR), not restarted. A SIGHUP that is
/// ignored stays so: nohup asks for that.
enum class SecondSigint {
  ends,   ///< after the first signal a SIGINT ends the process at once, as it would have without this call
  waits,  ///< like any other: for a process that ends with its parent, whose second SIGINT it is
};
void catch_interrupts(SecondSigint second = SecondSigint::ends);

/// The first of the caught signals that arrived, 0 while none did.
int interrupted();

/// Throws Interrupted when a caught signal has arrived: for work that is done again anyhow.
void give_up_if_interrupted();

/// Throws Interrupted when a caught signal arrived two seconds ago or earlier: for work that should be finished if that
/// does not take long and can be made again, asked every now and then.
void give_up_if_overdue();

/// "SIGINT", "SIGTERM", "SIGUSR1", "SIGHUP"; "another signal" for others.
const char* signal_name(int signal);

/// Ends the process as the signal that arrived would have without `catch_interrupts`: for work that has tidied up and
/// keeps nothing to go on from.
[[noreturn]] void end_by_signal();

/// Forgets what arrived, for a process that was forked from an interrupted one, and for tests.
void forget_interrupt();

}  // namespace gradflow
