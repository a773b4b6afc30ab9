#include "output/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "core/files.h"
#include "testing/temporary_folder.h"

namespace gradflow {
namespace {

TEST(Log, SaysEachKindInItsWay) {
  std::ostringstream terminal;
  Log log(terminal);
  log.note("writing results/a");
  log.warning("two threads on one core");
  log.error(Error(std::vector<std::string>{"a.json:1: seed: is negative; write 0 or more",
                                           "a.json:2: name: is empty; leave it out"}));
  log.line("loss  1.7\nspikes  0\n");
  EXPECT_EQ(terminal.str(),
            "gradflow: writing results/a\n"
            "gradflow: warning: two threads on one core\n"
            "gradflow: error: a.json:1: seed: is negative; write 0 or more\n"
            "gradflow: error: a.json:2: name: is empty; leave it out\n"
            "loss  1.7\nspikes  0\n");
}

TEST(Log, TakesTextWithBracesAsItIs) {
  std::ostringstream terminal;
  Log log(terminal);
  log.line("100 % {of} {0} it {");
  EXPECT_EQ(terminal.str(), "100 % {of} {0} it {\n");
}

TEST(Log, RunLogHoldsWhatTheTerminalSaidAtOnce) {
  const TemporaryFolder folder;
  std::ostringstream terminal;
  Log log(terminal);
  log.note("before");
  log.open_file(folder / "run.log");
  log.note("hello {}");
  log.show_status("step 1");
  log.show_status("step 2");
  log.record("step 2");
  log.warning("careful");
  EXPECT_EQ(read_file(folder / "run.log"), "gradflow: hello {}\nstep 2\ngradflow: warning: careful\n");
}

TEST(Log, GoesOnBehindWhatRunLogHolds) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "run.log", "first part\n");
  std::ostringstream terminal;
  Log log(terminal);
  log.open_file(folder / "run.log");
  log.line("second part");
  EXPECT_EQ(read_file(folder / "run.log"), "first part\nsecond part\n");
}

TEST(Log, QuietKeepsWarningsAndErrorsAndTheWholeFile) {
  const TemporaryFolder folder;
  std::ostringstream terminal;
  Log log(terminal, /*quiet=*/true);
  log.open_file(folder / "run.log");
  log.note("a");
  log.line("b");
  EXPECT_EQ(terminal.str(), "");
  log.warning("c");
  log.error(Error("d"));
  EXPECT_EQ(terminal.str(), "gradflow: warning: c\ngradflow: error: d\n");
  EXPECT_EQ(read_file(folder / "run.log"), "gradflow: a\nb\ngradflow: warning: c\ngradflow: error: d\n");
}

TEST(Log, LinesTakeThePlaceOfTheStatusLine) {
  std::ostringstream terminal;
  Log log(terminal);
  log.show_status("12345");
  log.show_status("123");
  log.note("x");
  log.note("y");
  EXPECT_EQ(terminal.str(), "\r12345\r123  \r   \rgradflow: x\ngradflow: y\n");
}

TEST(Log, EndsAStatusLineThatStillStands) {
  std::ostringstream terminal;
  { Log(terminal).show_status("123"); }
  EXPECT_EQ(terminal.str(), "\r123\n");
  std::ostringstream silent;
  { Log log(silent); }
  EXPECT_EQ(silent.str(), "");
}

TEST(Log, WithoutAFileRecordsNothing) {
  std::ostringstream terminal;
  Log log(terminal);
  log.record("x");
  EXPECT_EQ(terminal.str(), "");
}

TEST(Log, SaysOnceThatRunLogCannotBeWritten) {
  std::ostringstream terminal;
  Log log(terminal);
  log.open_file("/dev/full");
  log.note("a");
  log.note("b");
  EXPECT_THAT(terminal.str(), testing::StartsWith("gradflow: a\ngradflow: warning: /dev/full: cannot be written ("));
  EXPECT_THAT(terminal.str(), testing::EndsWith("the run goes on without it\ngradflow: b\n"));
}

TEST(Log, NamesAFileThatCannotBeOpened) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "file", "");
  std::ostringstream terminal;
  Log log(terminal);
  try {
    log.open_file(folder / "file/run.log");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::StartsWith(folder / "file/run.log" + ": cannot be written ("));
  }
}

}  // namespace
}  // namespace gradflow
