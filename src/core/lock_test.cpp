#include "core/lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>
#include <string>
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

TEST(FileLock, SaysWhyTheFileCannotBeOpened) {
  const TemporaryFolder folder;
  EXPECT_THAT(refusal(folder / "absent/lock"),
              testing::StartsWith(folder / "absent/lock" + ": cannot be written (No such file or directory)"));
}

}  // namespace
}  // namespace gradflow
