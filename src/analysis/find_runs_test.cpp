#include "analysis/find_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/files.h"
#include "testing/made_run.h"
#include "testing/temporary_folder.h"

namespace gradflow {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::make_run;
using testing::transformer_config;
using Paths = std::vector<std::string>;

class FindRuns : public ::testing::Test {
 protected:
  void make(const std::string& name, std::int64_t seed = 1) {
    make_run(folder_ / name, {.config = transformer_config(2, Placement::pre, seed)});
  }

  /// Paths below the test's folder.
  Paths found(const Paths& names) {
    Paths paths;
    for (const std::string& name : names) paths.push_back(folder_ / name);
    found_ = find_runs(paths);
    Paths result;
    for (const RecordedRun& run : found_.runs) result.push_back(below(run.path));
    return result;
  }
  Paths left_out() const {
    Paths result;
    for (const LeftOut& one : found_.left_out) result.push_back(below(one.path));
    return result;
  }
  std::string below(const std::string& path) const { return path.substr(folder_.path().size() + 1); }

  TemporaryFolder folder_;
  FoundRuns found_;
};

TEST_F(FindRuns, AProbeIsNoRun) {
  make("run");
  create_folders(folder_ / "probe");
  write_file_atomically(folder_ / "probe/probe.csv", "");
  write_file_atomically(folder_ / "probe/config.json", "{}");
  EXPECT_THAT(found({"probe", "run"}), ElementsAre("run"));
  EXPECT_THAT(left_out(), IsEmpty());
  EXPECT_THAT(found_.probes, ElementsAre(folder_ / "probe"));
  found({"probe"});
  try {
    require_runs(found_);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("a probe, which gradflow report shows"));
  }
}

TEST_F(FindRuns, SearchesFoldersInTheOrderOfTheirNames) {
  for (const char* name : {"b/2", "b/10", "a", "b/deep/er/run", "c"}) make(name);
  EXPECT_THAT(found({"b", "a"}), ElementsAre("b/10", "b/2", "b/deep/er/run", "a"));
  EXPECT_THAT(left_out(), IsEmpty());
  EXPECT_THAT(found_.searched, ElementsAre(folder_ / "b", folder_ / "a"));
  EXPECT_THAT(found({"b/2"}), ElementsAre("b/2"));
  EXPECT_THAT(found({"b/2///"}), ElementsAre("b/2"));
}

TEST_F(FindRuns, ARunInsideARunIsFoundToo) {
  make("a");
  make("a/again");
  EXPECT_THAT(found({"a"}), ElementsAre("a", "a/again"));
}

TEST_F(FindRuns, EachRunCountsOnceWhateverLeadsToIt) {
  make("a/1");
  fs::create_directory_symlink(folder_ / "a", folder_ / "link");
  fs::create_directory_symlink(folder_.path(), folder_ / "a/1/loop");
  fs::create_symlink(folder_ / "nowhere", folder_ / "dangling");
  EXPECT_THAT(found({"a", "a/1", "link", "a/../a"}), ElementsAre("a/1"));
  EXPECT_THAT(found({"link"}), ElementsAre("link/1"));
}

TEST_F(FindRuns, HiddenFoldersAreNotSearched) {
  make(".hidden/1");
  make("seen/1");
  Paths paths{folder_.path()};
  EXPECT_EQ(find_runs(paths).runs.size(), 1u);
  EXPECT_THAT(found({".hidden"}), ElementsAre(".hidden/1"));
}

TEST_F(FindRuns, NamesWhatItLeavesOut) {
  make("good");
  make("half");
  remove_file(folder_ / "half/summary.json");
  create_folders(folder_ / "begun");
  write_file_atomically(folder_ / "begun/config.json", "{}");
  create_folders(folder_ / "notes");
  write_file_atomically(folder_ / "notes/README.md", "nothing that looks like a run");
  write_file_atomically(folder_ / "notes/lock", "");
  write_file_atomically(folder_ / "table.csv", "");
  EXPECT_THAT(found({"begun", "good", "half", "notes", "table.csv"}), ElementsAre("good"));
  EXPECT_THAT(left_out(), ElementsAre("begun", "half", "table.csv"));
  EXPECT_EQ(text_of(found_.left_out[2]),
            folder_ / "table.csv" + ": left out: is a file, not a folder; name run folders, or folders above them");
}

TEST_F(FindRuns, AFolderThatMayNotBeReadIsNamed) {
  if (geteuid() == 0) GTEST_SKIP() << "root may read everything";
  make("good");
  create_folders(folder_ / "locked");
  fs::permissions(folder_ / "locked", fs::perms::none);
  EXPECT_THAT(found({"good", "locked"}), ElementsAre("good"));
  fs::permissions(folder_ / "locked", fs::perms::owner_all);
  EXPECT_THAT(left_out(), ElementsAre("locked"));
}

TEST_F(FindRuns, NamesEveryPathThatIsNotThere) {
  make("good");
  const Paths paths{folder_ / "good", folder_ / "bad", "", folder_ / "worse"};
  try {
    find_runs(paths);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.lines(),
                ElementsAre(folder_ / "bad" + ": does not exist; name run folders, or folders above them",
                            "\"\": does not exist; name run folders, or folders above them",
                            folder_ / "worse" + ": does not exist; name run folders, or folders above them"));
  }
}

TEST_F(FindRuns, NothingFoundNamesWhatWasSearched) {
  create_folders(folder_ / "a");
  create_folders(folder_ / "b");
  found({"a", "b"});
  try {
    require_runs(found_);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()), folder_ / "a" + ", " + (folder_ / "b") +
                                             ": no run folder is there; name run folders, or folders above them");
  }
}

}  // namespace
}  // namespace gradflow
