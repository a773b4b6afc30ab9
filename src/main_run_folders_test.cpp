// The whole program: the folders of runs, which run they belong to and what stands in them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <string>

#include "testing/run_of_program.h"

namespace gradflow::testing {
namespace {

using namespace ::testing;

class RunFolders : public ProgramTest {};

/// How many threads of a process have used a processor for 10 ms or longer.
std::size_t busy_threads(pid_t process) {
  std::size_t busy = 0;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/task")) {
    const std::string stat = lines_of(thread.path().string() + "/stat").at(0);
    std::istringstream words(stat.substr(stat.rfind(')') + 2));  // behind the program's name, from field 3 on
    const Words fields(std::istream_iterator<std::string>(words), {});
    if (fields.at(11) != "0" || fields.at(12) != "0") ++busy;  // clock ticks in the program, in the kernel
  }
  return busy;
}

TEST_F(RunFolders, StandBelowResultsWithANameThatSaysWhatDiffers) {
  const Words arguments = Words{"run", tiny(), "--quiet"} + set({"placement=post", "seed=7"});
  EXPECT_EQ(run_gradflow(arguments, {.folder = folder_.path()}).code, 0);
  Words folders;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "results/tiny"))
    folders.push_back(entry.path().filename().string());
  ASSERT_EQ(folders.size(), 1u);
  EXPECT_TRUE(std::regex_match(folders[0], std::regex("placement=post_.*seed=7_.*-[0-9a-f]{8}"))) << folders[0];
  const auto described =
      nlohmann::json::parse(run_gradflow(Words{"describe", "--json", tiny()} + set({"placement=post", "seed=7"})).out);
  EXPECT_EQ(described["folder"], "results/tiny/" + folders[0]);
  // The same again: found by its name.
  const Outcome again =
      run_gradflow({"run", tiny(), "--set", "placement=post", "--set", "seed=7"}, {.folder = folder_.path()});
  EXPECT_EQ(again.code, 0);
  EXPECT_THAT(again.error_lines(), ElementsAre(HasSubstr("already finished")));
}

TEST_F(RunFolders, AFinishedRunIsNotRunAgain) {
  const RunFiles run = this->run(tiny(), {});
  const std::string manifest = read_file(run.file("manifest.json"));
  const auto written = std::filesystem::last_write_time(run.file("steps.csv"));
  const Outcome again = run_gradflow(command(tiny(), {}));
  EXPECT_EQ(again.code, 0);
  EXPECT_THAT(again.out, IsEmpty());
  EXPECT_THAT(again.error_lines(), ElementsAre(AllOf(StartsWith("gradflow: " + run.path), HasSubstr("already finished"),
                                                     HasSubstr("--overwrite"))));
  EXPECT_EQ(read_file(run.file("manifest.json")), manifest);
  EXPECT_EQ(std::filesystem::last_write_time(run.file("steps.csv")), written);
}

TEST_F(RunFolders, AreNotGivenToAnotherConfiguration) {
  const RunFiles run = this->run(tiny(), {});
  const Outcome other = run_gradflow(command(tiny(), {"depth=3"}));
  EXPECT_EQ(other.code, 1);
  EXPECT_THAT(other.error_lines(),
              ElementsAre(AllOf(StartsWith("gradflow: error: " + run.path + ": holds a run of another configuration"),
                                HasSubstr("model.depth 2 → 3"), HasSubstr("--overwrite"))));
  EXPECT_EQ(run.json("config.json")["model"]["depth"], 2);

  EXPECT_EQ(run_gradflow(command(tiny(), {"depth=3"}) + Words{"--overwrite"}).code, 0);
  EXPECT_EQ(run.json("config.json")["model"]["depth"], 3);
  EXPECT_EQ(integers(run.layers(), "layer").back(), 4);
}

TEST_F(RunFolders, TheManifestSaysHowARunWasMade) {
  const auto manifest = run(tiny(), {}).json("manifest.json");
  EXPECT_EQ(manifest["status"], "finished");
  EXPECT_EQ(manifest["device"], "cpu");
  EXPECT_EQ(manifest["threads"], 1);
  EXPECT_EQ(manifest["flush_denormals"], false);
  EXPECT_EQ(manifest["command_line"], (nlohmann::json{GRADFLOW_PROGRAM, "run", tiny(), "--out", folder_ / "run"}));
  for (const char* key : {"version", "git_revision", "compiler", "libtorch", "blas", "cpu", "host"})
    EXPECT_THAT(manifest[key].get<std::string>(), Not(IsEmpty())) << key;
  for (const char* key : {"started", "ended"})
    EXPECT_TRUE(std::regex_match(manifest[key].get<std::string>(), std::regex(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)")))
        << manifest[key];
}

TEST_F(RunFolders, GrowByWholeRowsAndBelongToOneProcess) {
  const Words arguments = command(tiny(), {"steps=100000000", "record.steps_every=10"});
  RunningProgram running(GRADFLOW_PROGRAM, arguments, {});
  const RunFiles run{folder_ / "run"};
  ASSERT_TRUE(in_time([&] { return run.has("steps.csv") && lines_of(run.file("steps.csv")).size() > 2; }));
  ASSERT_TRUE(running.runs());
  EXPECT_EQ(run.json("manifest.json")["status"], "running");
  for (int look = 0; look < 3; ++look) {
    const std::string text = read_file(run.file("steps.csv"));
    EXPECT_THAT(text, EndsWith("\n"));
    const std::size_t before = text.size();
    EXPECT_TRUE(in_time([&] { return read_file(run.file("steps.csv")).size() > before; })) << "no new row";
  }
  const Outcome second = run_gradflow(arguments);
  EXPECT_EQ(second.code, 1);
  EXPECT_THAT(second.error_lines(), ElementsAre(AllOf(StartsWith("gradflow: error: " + run.file("lock") +
                                                                 ": held by process " + std::to_string(running.pid())),
                                                      HasSubstr("; "))));
  running.kill(SIGKILL);
  EXPECT_EQ(running.wait().code, 128 + SIGKILL);

  const Outcome third = run_gradflow(arguments);
  EXPECT_EQ(third.code, 1);
  EXPECT_THAT(third.error_lines(), ElementsAre(AllOf(HasSubstr("holds an unfinished run (killed)"),
                                                     HasSubstr("--resume"), HasSubstr("--overwrite"))));
  EXPECT_EQ(run_gradflow(command(tiny(), {}) + Words{"--overwrite"}).code, 0);
  EXPECT_EQ(run.steps().rows(), 5u);
}

TEST_F(RunFolders, ARunTakesAsManyThreadsAsItsKeySays) {
  for (const std::size_t threads : {1u, 2u}) {
    const std::string name = "run" + std::to_string(threads);
    const Words overrides = {"steps=1000000", "width=128", "context=64", "threads=" + std::to_string(threads)};
    RunningProgram running(GRADFLOW_PROGRAM, command(tiny(), overrides, name), {.shell = "export OMP_NUM_THREADS=3"});
    const RunFiles run{folder_ / name};
    ASSERT_TRUE(in_time([&] { return run.has("steps.csv") && lines_of(run.file("steps.csv")).size() > 2; }));
    EXPECT_TRUE(in_time([&] { return busy_threads(running.pid()) >= threads; }));
    EXPECT_EQ(busy_threads(running.pid()), threads);
  }
}

}  // namespace
}  // namespace gradflow::testing
