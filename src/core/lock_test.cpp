#include "core/lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "core/error.h"
#include "core/files.h"
#include "core/machine.h"
#include "testing/temporary_folder.h"

namespace gradflow {
namespace {

std::string refusal(const std::string& path) {
  try {
    const FileLock lock(path);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(FileLock, WritesHostAndProcess) {
  const TemporaryFolder folder;
  const FileLock lock(folder / "lock");
  EXPECT_EQ(read_file(folder / "lock"), host_name() + " " + std::to_string(getpid()) + "\n");
}

TEST(FileLock, IsReleasedWithItsObject) {
  const TemporaryFolder folder;
  std::optional<FileLock> lock(FileLock(folder / "lock"));
  EXPECT_NE(refusal(folder / "lock"), "no error");
  lock.reset();
  EXPECT_EQ(refusal(folder / "lock"), "no error");
}

TEST(FileLock, CanBeAskedForWithoutTakingIt) {
  const TemporaryFolder folder;
  EXPECT_FALSE(is_locked(folder / "lock"));
  EXPECT_FALSE(std::filesystem::exists(folder / "lock")) << "asking leaves nothing behind";
  std::optional<FileLock> lock(FileLock(folder / "lock"));
  EXPECT_TRUE(is_locked(folder / "lock"));
  lock.reset();
  EXPECT_FALSE(is_locked(folder / "lock"));
}

TEST(FileLock, WhoOnlyAsksStandsInNobodysWay) {
  const TemporaryFolder folder;
  { const FileLock once(folder / "lock"); }
  std::atomic<bool> done = false;
  std::thread asker([&] {
    while (!done) {
      is_locked(folder / "lock");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  for (int i = 0; i < 500; ++i) EXPECT_EQ(refusal(folder / "lock"), "no error");
  done = true;
  asker.join();
}

TEST(FileLock, NamesTheHoldingProcessAndEndsWithIt) {
  const TemporaryFolder folder;
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const FileLock lock(folder / "lock");
    (void)!write(ready[1], "x", 1);
    pause();
    _exit(0);
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  EXPECT_EQ(refusal(folder / "lock"), folder / "lock" + ": held by process " + std::to_string(child) + " on " +
                                          host_name() + "; wait until it ends or choose another folder with --out");
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(refusal(folder / "lock"), "no error");
  close(ready[0]);
  close(ready[1]);
}

TEST(FileLock, WaitsWhereItIsAskedTo) {
  const TemporaryFolder folder;
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  std::optional<FileLock> lock(FileLock(folder / "lock"));
  const pid_t child = fork();
  if (child == 0) {
    lock.reset();  // the child's share of it
    const FileLock waited = FileLock::when_free(folder / "lock");
    (void)!write(ready[1], "x", 1);
    _exit(0);
  }
  close(ready[1]);
  usleep(50'000);  // by now the child meets a lock that is held
  lock.reset();
  char byte = 0;
  EXPECT_EQ(read(ready[0], &byte, 1), 1);
  waitpid(child, nullptr, 0);
  close(ready[0]);
}

TEST(FileLock, TellsAHeldLockFromOtherErrors) {
  const TemporaryFolder folder;
  const FileLock lock(folder / "lock");
  EXPECT_THROW(FileLock(folder / "lock"), LockHeld);
  try {
    FileLock(folder / "absent/lock");
    FAIL();
  } catch (const LockHeld&) {
    FAIL();
  } catch (const Error&) {
  }
}

TEST(FileLock, SaysWhyTheFileCannotBeOpened) {
  const TemporaryFolder folder;
  EXPECT_THAT(refusal(folder / "absent/lock"),
              testing::StartsWith(folder / "absent/lock" + ": cannot be written (No such file or directory)"));
}

}  // namespace
}  // namespace gradflow
