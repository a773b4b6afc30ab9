#include "core/interrupt.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

namespace gradflow {
namespace {

// Each in a process of its own: handlers belong to the process.

TEST(InterruptDeathTest, TheFirstSignalIsRemembered) {
  EXPECT_EXIT(
      {
        catch_interrupts();
        if (interrupted() != 0) _exit(1);
        raise(SIGTERM);
        raise(SIGUSR1);
        _exit(interrupted() == SIGTERM ? 0 : 2);
      },
      testing::ExitedWithCode(0), "");
}

TEST(InterruptDeathTest, ASecondSigintEndsTheProcess) {
  EXPECT_EXIT(
      {
        catch_interrupts();
        raise(SIGINT);
        if (interrupted() != SIGINT) _exit(1);
        raise(SIGINT);
        _exit(2);
      },
      testing::KilledBySignal(SIGINT), "");
}

TEST(InterruptDeathTest, ASecondSigintWaitsWhereItIsAskedTo) {
  EXPECT_EXIT(
      {
        catch_interrupts(SecondSigint::waits);
        raise(SIGINT);
        raise(SIGINT);
        _exit(interrupted() == SIGINT ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(InterruptDeathTest, SigtermTwiceStillWaits) {
  EXPECT_EXIT(
      {
        catch_interrupts();
        raise(SIGTERM);
        raise(SIGTERM);
        _exit(0);
      },
      testing::ExitedWithCode(0), "");
}

TEST(InterruptDeathTest, AClosedTerminalIsASignalLikeTheOthers) {
  EXPECT_EXIT(
      {
        signal(SIGHUP, SIG_DFL);
        catch_interrupts();
        raise(SIGHUP);
        _exit(interrupted() == SIGHUP ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(InterruptDeathTest, AClosedTerminalIsIgnoredUnderNohup) {
  EXPECT_EXIT(
      {
        signal(SIGHUP, SIG_IGN);
        catch_interrupts();
        raise(SIGHUP);
        _exit(interrupted() == 0 ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(InterruptDeathTest, WhoHasTidiedUpEndsByTheSignalThatArrived) {
  for (const int wanted : interrupting_signals)
    EXPECT_EXIT(
        {
          signal(SIGHUP, SIG_DFL);
          catch_interrupts();
          raise(wanted);
          end_by_signal();
        },
        testing::KilledBySignal(wanted), "");
}

TEST(InterruptDeathTest, WorkThatIsDoneAgainIsGivenUpAtOnceOtherWorkLater) {
  EXPECT_EXIT(
      {
        catch_interrupts();
        give_up_if_interrupted();
        give_up_if_overdue();
        raise(SIGTERM);
        give_up_if_overdue();
        int given_up = 0;
        try {
          give_up_if_interrupted();
        } catch (const Interrupted&) {
          ++given_up;
        }
        for (int tenth = 0; tenth < 50 && given_up == 1; ++tenth) {
          usleep(100'000);
          try {
            give_up_if_overdue();
          } catch (const Interrupted&) {
            if (tenth >= 10) ++given_up;
          }
        }
        _exit(given_up == 2 ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(Interrupt, SignalsHaveTheirNames) {
  EXPECT_STREQ(signal_name(SIGINT), "SIGINT");
  EXPECT_STREQ(signal_name(SIGTERM), "SIGTERM");
  EXPECT_STREQ(signal_name(SIGUSR1), "SIGUSR1");
  EXPECT_STREQ(signal_name(SIGHUP), "SIGHUP");
  for (const int signal : interrupting_signals) EXPECT_STRNE(signal_name(signal), "another signal");
}

}  // namespace
}  // namespace gradflow
