#include "output/manifest.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files.h"
#include "testing/temporary_folder.h"

namespace gradflow {
namespace {

using std::chrono::milliseconds;
using std::chrono::system_clock;

constexpr system_clock::time_point started{milliseconds(1'706'706'309'900)};

Manifest example() {
  Manifest manifest;
  manifest.version = "0.1.0";
  manifest.git_revision = "0123456789ab-dirty";
  manifest.compiler = "g++ 12.2.0";
  manifest.libtorch = "2.13.0+cpu";
  manifest.blas = "MKL";
  manifest.cpu = "A processor";
  manifest.host = "node1";
  manifest.device = "cpu";
  manifest.backend = "fused";
  manifest.threads = 2;
  manifest.flush_denormals = true;
  manifest.command_line = {"gradflow", "run", "configs/pre.json"};
  manifest.started = utc_text(started);
  return manifest;
}

TEST(Manifest, HoldsWhereAndWithWhatARunWasMade) {
  const TemporaryFolder folder;
  Manifest manifest = example();
  write_manifest(folder / "manifest.json", manifest);
  auto json = nlohmann::json::parse(read_file(folder / "manifest.json"));
  EXPECT_EQ(json["version"], "0.1.0");
  EXPECT_EQ(json["git_revision"], "0123456789ab-dirty");
  EXPECT_EQ(json["compiler"], "g++ 12.2.0");
  EXPECT_EQ(json["libtorch"], "2.13.0+cpu");
  EXPECT_EQ(json["blas"], "MKL");
  EXPECT_EQ(json["cpu"], "A processor");
  EXPECT_EQ(json["host"], "node1");
  EXPECT_EQ(json["device"], "cpu");
  EXPECT_EQ(json["backend"], "fused");
  EXPECT_EQ(json["threads"], 2);
  EXPECT_EQ(json["flush_denormals"], true);
  EXPECT_EQ(json["command_line"], (std::vector<std::string>{"gradflow", "run", "configs/pre.json"}));
  EXPECT_EQ(json["started"], "2024-01-31T13:05:09Z");
  EXPECT_TRUE(json["ended"].is_null());
  EXPECT_EQ(json["status"], "running");
  EXPECT_EQ(json["reason"], "");

  manifest.status = RunStatus::diverged;
  manifest.reason = "loss is nan at step 7";
  manifest.ended = started + milliseconds(61'000);
  write_manifest(folder / "manifest.json", manifest);
  json = nlohmann::json::parse(read_file(folder / "manifest.json"));
  EXPECT_EQ(json["status"], "diverged");
  EXPECT_EQ(json["reason"], "loss is nan at step 7");
  EXPECT_EQ(json["ended"], "2024-01-31T13:06:10Z");
}

TEST(Manifest, SurvivesACommandLineThatIsNotUtf8) {
  const TemporaryFolder folder;
  Manifest manifest = example();
  manifest.command_line = {"gradflow", "run", "\xff.json"};
  write_manifest(folder / "manifest.json", manifest);
  EXPECT_EQ(nlohmann::json::parse(read_file(folder / "manifest.json"))["command_line"][2], "\xEF\xBF\xBD.json");
}

TEST(Manifest, TellsItsStatus) {
  const TemporaryFolder folder;
  for (const RunStatus status :
       {RunStatus::running, RunStatus::finished, RunStatus::diverged, RunStatus::interrupted, RunStatus::failed}) {
    Manifest manifest = example();
    manifest.status = status;
    write_manifest(folder / "manifest.json", manifest);
    EXPECT_EQ(status_in_manifest(folder / "manifest.json"), status) << name_of(status);
  }
}

TEST(Manifest, HasNoStatusWhenItIsNone) {
  const TemporaryFolder folder;
  EXPECT_FALSE(status_in_manifest(folder / "absent.json"));
  for (const char* text : {"", "{", "[]", "{}", R"({"status": 1})", R"({"status": "odd"})"}) {
    write_file_atomically(folder / "manifest.json", text);
    EXPECT_FALSE(status_in_manifest(folder / "manifest.json")) << text;
  }
}

TEST(Manifest, NamesTheFileThatCannotBeWritten) {
  const TemporaryFolder folder;
  EXPECT_THROW(write_manifest(folder / "absent/manifest.json", example()), Error);
}

TEST(Manifest, OfAResumedRunGoesOnFromTheOneThatIsThere) {
  const TemporaryFolder folder;
  Manifest first = example();
  first.resumed = {{120, "2024-01-31T14:00:00Z", {}}};
  write_manifest(folder / "manifest.json", first);
  Manifest second = example();
  second.started = "2024-02-01T00:00:00Z";
  continue_history(folder / "manifest.json", second);
  EXPECT_EQ(second.started, "2024-01-31T13:05:09Z");
  second.resumed.push_back({160, second.started, {}});
  write_manifest(folder / "manifest.json", second);
  const auto json = nlohmann::json::parse(read_file(folder / "manifest.json"));
  ASSERT_EQ(json["resumed"].size(), 2u);
  EXPECT_EQ(json["resumed"][0], (nlohmann::json{{"step", 120}, {"at", "2024-01-31T14:00:00Z"}}));

  write_file_atomically(folder / "manifest.json", R"({"started": 3, "resumed": [7, {"step": "x"}]})");
  Manifest third = example();
  continue_history(folder / "manifest.json", third);
  EXPECT_EQ(third.started, example().started);
  EXPECT_TRUE(third.resumed.empty());
}

TEST(Manifest, TellsWhatChangedOfAllThatBitsDependOn) {
  const TemporaryFolder folder;
  write_manifest(folder / "manifest.json", example());
  Manifest here = example();
  here.host = "node2";
  here.threads = 1;
  EXPECT_TRUE(changes_of_surroundings(folder / "manifest.json", here).empty());
  here.libtorch = "2.6.0";
  here.cpu = "Another processor";
  here.backend = "aten";
  const std::vector<std::string> changes = {"libtorch 2.13.0+cpu → 2.6.0", "cpu A processor → Another processor",
                                            "backend fused → aten"};
  EXPECT_EQ(changes_of_surroundings(folder / "manifest.json", here), changes);
  EXPECT_TRUE(changes_of_surroundings(folder / "absent.json", here).empty());
  // They stay in the history.
  here.resumed = {{7, "2024-01-31T14:00:00Z", changes}};
  write_manifest(folder / "manifest.json", here);
  Manifest again = example();
  continue_history(folder / "manifest.json", again);
  ASSERT_EQ(again.resumed.size(), 1u);
  EXPECT_EQ(again.resumed[0].changed, changes);
}

TEST(Manifest, OfAProcessThatDiedCanBeCorrected) {
  const TemporaryFolder folder;
  Manifest manifest = example();
  write_manifest(folder / "manifest.json", manifest);
  write_failure(folder / "manifest.json", "its worker ended with signal 9");
  const auto json = nlohmann::json::parse(read_file(folder / "manifest.json"));
  EXPECT_EQ(json["status"], "failed");
  EXPECT_EQ(json["reason"], "its worker ended with signal 9");
  EXPECT_TRUE(json["ended"].is_string());
  EXPECT_EQ(json["version"], "0.1.0") << "the rest stays";
  write_failure(folder / "absent.json", "no file, nothing to correct");
  EXPECT_FALSE(file_size(folder / "absent.json"));
}

}  // namespace
}  // namespace gradflow
