#include "core/process.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

#include "core/error.h"
#include "core/interrupt.h"

namespace gradflow {
namespace {

MeasuredEnd shell(const std::string& script) { return run_process("/bin/sh", {"sh", "-c", script}); }

TEST(Process, TellsHowAProgramEnded) {
  EXPECT_EQ(shell("exit 0").code, 0);
  EXPECT_EQ(shell("exit 7").code, 7);
  EXPECT_EQ(shell("kill -KILL $$").code, 128 + 9);
}

TEST(Process, TellsItsTimeAndItsMemory) {
  const MeasuredEnd end = shell("sleep 0.2");
  EXPECT_GE(end.seconds, 0.2);
  EXPECT_GT(end.peak_memory, 100'000);
  // 40 MB in a variable of the shell.
  EXPECT_GT(shell("x=$(head -c 40000000 /dev/zero | tr '\\0' x); exit 0").peak_memory, 40'000'000);
}

TEST(ProcessDeathTest, IsKilledWhenASignalArrives) {
  EXPECT_EXIT(
      {
        catch_interrupts();
        const MeasuredEnd end = shell("sleep 0.3; kill -TERM $PPID; exec sleep 60");
        _exit(end.code == 128 + SIGKILL && end.seconds < 30 && interrupted() == SIGTERM ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(Process, ThatCannotBeStartedIsAnError) {
  try {
    run_process("/nowhere/program", {"program"});
    FAIL() << "started";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("/nowhere/program: cannot be started"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace gradflow
