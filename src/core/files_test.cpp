#include "core/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <utility>

#include "testing/temporary_folder.h"

namespace gradflow {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

template <class Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

/// Caps the size of files, so that a write stops half way and then fails, as on a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int);
};

TEST(ReadFile, ReturnsEveryByte) {
  const TemporaryFolder folder;
  const std::string content("a\0\r\n\xff", 5);
  write_file_atomically(folder / "bytes", content);
  EXPECT_EQ(read_file(folder / "bytes"), content);
}

TEST(ReadFile, SaysWhyItCannot) {
  const TemporaryFolder folder;
  EXPECT_EQ(error_of([&] { read_file(folder / "absent"); }),
            folder / "absent" + ": cannot be read (No such file or directory); check the path");
  EXPECT_EQ(error_of([&] { read_file(folder.path()); }),
            folder.path() + ": cannot be read (Is a directory); name a file, not a folder");
}

TEST(WriteFileAtomically, ReplacesTheContentAndLeavesNothingElse) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "file", "old and longer");
  write_file_atomically(folder / "file", "new");
  EXPECT_EQ(read_file(folder / "file"), "new");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(WriteFileAtomically, TakesAFileInTheCurrentFolder) {
  const TemporaryFolder folder;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  write_file_atomically("file", "here");
  std::filesystem::current_path(before);
  EXPECT_EQ(read_file(folder / "file"), "here");
}

TEST(WriteFileAtomically, KeepsTheOldContentWhenItFails) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "file", "old");
  {
    const FileSizeLimit limit(1000);
    EXPECT_THAT(error_of([&] { write_file_atomically(folder / "file", std::string(5000, 'x')); }),
                AllOf(StartsWith(folder / "file" + ": cannot be written (File too large)"), HasSubstr("ulimit -f")));
  }
  EXPECT_EQ(read_file(folder / "file"), "old");
  EXPECT_FALSE(std::filesystem::exists(folder / "file.tmp"));
}

TEST(WriteFileAtomically, NamesTheFileWhenTheFolderIsNotThere) {
  const TemporaryFolder folder;
  EXPECT_THAT(error_of([&] { write_file_atomically(folder / "absent/file", ""); }),
              StartsWith(folder / "absent/file" + ": cannot be written (No such file or directory)"));
}

TEST(CreateFolders, CreatesAllOfThemAndAcceptsThoseThere) {
  const TemporaryFolder folder;
  create_folders(folder / "a/b/c");
  create_folders(folder / "a/b/c");
  EXPECT_TRUE(std::filesystem::is_directory(folder / "a/b/c"));
}

TEST(CreateFolders, TakesAnyWayToWriteAPath) {
  const TemporaryFolder folder;
  for (const char* name : {"a/b//", "c/./d", "e/../f"}) {
    create_folders(folder / name);
    EXPECT_TRUE(std::filesystem::is_directory(folder / name)) << name;
  }
  EXPECT_EQ(without_slash_at_end("a/b//"), "a/b");
  EXPECT_EQ(without_slash_at_end("//"), "/");
  EXPECT_EQ(without_slash_at_end(""), "");
}

TEST(CreateFolders, RefusesAFileInTheWay) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "file", "");
  EXPECT_THAT(error_of([&] { create_folders(folder / "file/sub"); }),
              AllOf(StartsWith(folder / "file/sub" + ": cannot be created ("), HasSubstr("choose another path")));
  EXPECT_THAT(error_of([&] { create_folders(folder / "file"); }),
              StartsWith(folder / "file" + ": cannot be created ("));
}

TEST(RemoveFile, RemovesAndAcceptsItsAbsence) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "file", "");
  remove_file(folder / "file");
  remove_file(folder / "file");
  EXPECT_FALSE(std::filesystem::exists(folder / "file"));
  EXPECT_THAT(error_of([&] { remove_file(folder.path()); }), StartsWith(folder.path() + ": cannot be removed ("));
}

TEST(AppendFile, TruncatesThenGrows) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "file", "left from before");
  AppendFile file(folder / "file");
  EXPECT_EQ(read_file(folder / "file"), "");
  file.append("1\n");
  file.append("2\n");
  file.flush();
  file.append("3\n");
  EXPECT_EQ(read_file(folder / "file"), "1\n2\n");
  file.flush();
  EXPECT_EQ(read_file(folder / "file"), "1\n2\n3\n");
}

TEST(AppendFile, OnlyAppends) {
  const TemporaryFolder folder;
  AppendFile file(folder / "file");
  file.append("first\n");
  file.flush();
  // What another program does to the bytes already written must survive a flush: nothing is written twice.
  ASSERT_EQ(truncate((folder / "file").c_str(), 0), 0);
  file.append("second\n");
  file.flush();
  EXPECT_EQ(read_file(folder / "file"), "second\n");
}

TEST(AppendFile, WritesWhatIsLeftAtItsEndAndSurvivesAMove) {
  const TemporaryFolder folder;
  {
    AppendFile file(folder / "file");
    file.append("a\n");
    AppendFile moved(std::move(file));
    moved.append("b\n");
    EXPECT_EQ(moved.path(), folder / "file");
  }
  EXPECT_EQ(read_file(folder / "file"), "a\nb\n");
}

TEST(AppendFile, BoundsWhatItHoldsInMemory) {
  const TemporaryFolder folder;
  AppendFile file(folder / "file");
  const std::string line(1023, 'x');
  for (int i = 0; i < 2000; ++i) file.append(line + "\n");
  EXPECT_GT(std::filesystem::file_size(folder / "file"), 1'000'000u);
}

TEST(AppendFile, ReportsAFullDisk) {
  AppendFile file("/dev/full");
  file.append("row\n");
  EXPECT_EQ(error_of([&] { file.flush(); }),
            "/dev/full: cannot be written (No space left on device); free some space or choose another place");
}

TEST(AppendFile, TakesBackAHalfWrittenLineAndWritesItLater) {
  const TemporaryFolder folder;
  AppendFile file(folder / "file");
  file.append("header\n");
  file.flush();
  const std::string row = std::string(100, 'x') + "\n";
  file.append(row);
  {
    const FileSizeLimit limit(50);
    EXPECT_THAT(error_of([&] { file.flush(); }), StartsWith(folder / "file" + ": cannot be written (File too large)"));
    EXPECT_EQ(read_file(folder / "file"), "header\n");
  }
  file.flush();
  EXPECT_EQ(read_file(folder / "file"), "header\n" + row);
}

TEST(AppendFile, NoticesThatItsFolderVanished) {
  const TemporaryFolder folder;
  create_folders(folder / "run");
  AppendFile file(folder / "run/steps.csv");
  file.append("row\n");
  std::filesystem::remove_all(folder / "run");
  EXPECT_THAT(error_of([&] { file.flush(); }), StartsWith(folder / "run/steps.csv" + ": was removed or moved while"));
}

TEST(AppendFile, SyncFlushesToo) {
  const TemporaryFolder folder;
  AppendFile file(folder / "file");
  file.append("row\n");
  file.sync();
  EXPECT_EQ(read_file(folder / "file"), "row\n");
}

TEST(AppendFile, SaysWhyItCannotBeCreated) {
  const TemporaryFolder folder;
  EXPECT_THAT(error_of([&] { AppendFile file(folder / "absent/file"); }),
              StartsWith(folder / "absent/file" + ": cannot be written (No such file or directory)"));
}

// A pipe takes 64 KiB at once and the timer interrupts the waiting write: short writes and EINTR on one path.
TEST(AppendFile, GoesOnAfterShortWritesAndSignals) {
  const TemporaryFolder folder;
  const std::string pipe = folder / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  struct sigaction action {
  }, before{};
  action.sa_handler = [](int) {};
  sigaction(SIGALRM, &action, &before);
  const std::string text(400'000, 'y');
  std::string received;
  std::thread reader([&] {
    sigset_t alarm;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarm, nullptr);
    std::ifstream input(pipe);
    usleep(30'000);
    std::ostringstream content;
    content << input.rdbuf();
    received = content.str();
  });
  const itimerval timer{{0, 2000}, {0, 2000}}, off{};
  setitimer(ITIMER_REAL, &timer, nullptr);
  {
    AppendFile file(pipe);
    file.append(text);
    EXPECT_EQ(error_of([&] { file.flush(); }), "no error");
  }
  reader.join();
  setitimer(ITIMER_REAL, &off, nullptr);
  sigaction(SIGALRM, &before, nullptr);
  EXPECT_EQ(received, text);
}

TEST(WriteFileAtomically, JoinsPieces) {
  const TemporaryFolder folder;
  const std::string large(std::size_t{3} << 20, 'x');
  const std::string_view pieces[] = {"a", "", large, "b", "c"};
  write_file_atomically(folder / "file", pieces);
  EXPECT_EQ(read_file(folder / "file"), "a" + large + "bc");
}

TEST(WholeFile, StandsUnderItsNameOnlyWhenItIsWhole) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "file", "old");
  {
    WholeFile file(folder / "file");
    file.append("half");
  }
  EXPECT_EQ(read_file(folder / "file"), "old");
  const std::string large(3 << 20, 'x');
  {
    WholeFile file(folder / "file");
    for (const std::string& part : {std::string("a"), large, std::string("b")}) file.append(part);
    EXPECT_EQ(read_file(folder / "file"), "old");
    file.finish();
  }
  EXPECT_EQ(read_file(folder / "file"), "a" + large + "b");
  EXPECT_FALSE(std::filesystem::exists(folder / "file.tmp"));
}

TEST(WholeFile, ErrorsNameTheFileThatWasAskedFor) {
  const TemporaryFolder folder;
  EXPECT_THAT(error_of([&] { WholeFile(folder / "absent/file"); }),
              StartsWith(folder / "absent/file" + ": cannot be written (No such file or directory)"));
  const FileSizeLimit limit(1000);
  EXPECT_THAT(error_of([&] {
                WholeFile file(folder / "file");
                file.append(std::string(5000, 'x'));
                file.finish();
              }),
              StartsWith(folder / "file" + ": cannot be written (File too large)"));
  EXPECT_FALSE(std::filesystem::exists(folder / "file.tmp"));
}

TEST(WriteFileInPlace, ReplacesTheContentOfAFileThatExists) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "file", "a longer text");
  write_file_in_place(folder / "file", "short");
  EXPECT_EQ(read_file(folder / "file"), "short");
  EXPECT_THROW(write_file_in_place(folder / "none", "x"), Error);
  EXPECT_FALSE(std::filesystem::exists(folder / "none"));
}

TEST(AppendFile, GoesOnBehindALengthAndCutsOffTheRest) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "file", "one\ntwo\nthr");
  {
    AppendFile file(folder / "file", 8);
    EXPECT_EQ(file.length(), 8u);
    file.append("three\n");
    EXPECT_EQ(file.length(), 14u);
    file.sync();
  }
  EXPECT_EQ(read_file(folder / "file"), "one\ntwo\nthree\n");
}

TEST(AppendFile, NoticesThatItWasMoved) {
  const TemporaryFolder folder;
  AppendFile file(folder / "file");
  file.append("one\n");
  file.sync();
  std::filesystem::rename(folder / "file", folder / "elsewhere");
  EXPECT_THROW(file.sync(), Error);
  write_file_atomically(folder / "file", "another file\n");
  file.append("two\n");
  EXPECT_THROW(file.flush(), Error);
  EXPECT_EQ(read_file(folder / "elsewhere"), "one\n");
}

TEST(AppendFile, RefusesAFileThatIsTooShort) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "file", "one\n");
  EXPECT_THROW(AppendFile(folder / "file", 5), Error);
  EXPECT_THROW(AppendFile(folder / "none", 5), Error);
  EXPECT_EQ(read_file(folder / "file"), "one\n");
  EXPECT_FALSE(std::filesystem::exists(folder / "none"));
}

TEST(Files, AreReadInPart) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "file", "abcdef");
  EXPECT_EQ(read_beginning(folder / "file", 2), "ab");
  EXPECT_EQ(read_ending(folder / "file", 2), "ef");
  EXPECT_EQ(read_beginning(folder / "file", 100), "abcdef");
  EXPECT_EQ(read_ending(folder / "file", 100), "abcdef");
  EXPECT_THROW(read_ending(folder / "nothing", 2), Error);
}

}  // namespace
}  // namespace gradflow
