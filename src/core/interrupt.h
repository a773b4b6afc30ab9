#pragma once

namespace gradflow {

/// From now on SIGINT, SIGTERM and SIGUSR1 no longer end the process: they are remembered, and the work that goes on
/// asks `interrupted` between two steps. After the first of them a SIGINT ends the process at once, as it would have
/// without this call. System calls that wait are interrupted (EINTR), not restarted.
void catch_interrupts();

/// The first of the caught signals that arrived (SIGINT, SIGTERM or SIGUSR1), 0 while none did.
int interrupted();

/// "SIGINT", "SIGTERM", "SIGUSR1"; "another signal" for others.
const char* signal_name(int signal);

/// Forgets what arrived, for a process that was forked from an interrupted one, and for tests.
void forget_interrupt();

}  // namespace gradflow
