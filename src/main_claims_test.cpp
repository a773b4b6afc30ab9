// The command `claims` as a whole: from a claim file to its verdict.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "testing/run_of_program.h"

namespace gradflow::testing {
namespace {

using namespace ::testing;

class ClaimsCommand : public ProgramTest {
 protected:
  /// Whether the first loss of a stack lies above 3, which it does, and above `bound`.
  std::string claim(const std::string& name, const std::string& criterion, const std::string& more_axes = "",
                    const std::string& seeds = "[1, 2, 3]") {
    return write(
        name,
        R"({"statement": "The first loss is high.", "source": "none", "topic": "tests", "expected": "reproduced", "seconds": 1,
      "experiment": {"base": {"model": {"depth": 2, "width": 8, "heads": 2}, "data": {"vocabulary": 64, "context": 8}, "train": {"steps": 3, "batch": 4}},
                     "axes": {)" +
            more_axes + R"("seed": )" + seeds + R"(}},
      "statistic": {"name": "first_loss"}, "criterion": )" +
            criterion + "}");
  }
  Outcome run(const Words& files, const std::string& out = "out") {
    Words words{"claims", "run", "--json", "--out", folder_ / out};
    words.insert(words.end(), files.begin(), files.end());
    return run_gradflow(words);
  }
};

TEST_F(ClaimsCommand, JudgesRunsAndSharesThem) {
  const std::string is_true = claim("true.json", R"({"above": 3, "refuted": {"below": 2}})");
  const std::string reverse = claim("reverse.json", R"({"below": 2, "refuted": {"above": 3}})");
  const std::string few = claim("few.json", R"({"above": 3, "refuted": {"below": 2}})", "", "[1, 2]");
  const Outcome first = run({is_true, reverse, few});
  ASSERT_EQ(first.code, 0) << first.err;
  const nlohmann::json verdicts = nlohmann::json::parse(first.out);
  EXPECT_EQ(verdicts[0]["verdict"], "reproduced");
  EXPECT_EQ(verdicts[1]["verdict"], "refuted");
  EXPECT_EQ(verdicts[2]["verdict"], "undecided");
  EXPECT_EQ(verdicts[0]["runs"], verdicts[1]["runs"]) << "the same runs serve both";
  std::size_t folders = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "out/runs")) folders += entry.is_directory();
  EXPECT_EQ(folders, 3u);

  EXPECT_EQ(run({is_true, reverse, few}).out, first.out) << "nothing is run again";
  Words elsewhere{"--jobs", "2", is_true};
  const nlohmann::json anew = nlohmann::json::parse(run(elsewhere, "other").out);
  for (const char* key : {"verdict", "value", "low", "high"}) EXPECT_EQ(anew[0][key], verdicts[0][key]) << key;
}

TEST_F(ClaimsCommand, QuickVerdictsDoNotReplaceThoseOfFullLength) {
  const std::string file = claim("c.json", R"({"above": 3, "refuted": {"below": 2}})");
  const Outcome outcome = run_gradflow({"claims", "run", "--quick", file}, {.folder = folder_.path()});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(exists("results/claims-quick/claims.md"));
  EXPECT_FALSE(exists("results/claims"));
}

TEST_F(ClaimsCommand, ShowTellsWhatIsMeasured) {
  const std::string file = claim("c.json", R"({"above": 3, "refuted": {"below": 2}})");
  EXPECT_THAT(run_gradflow({"claims", "show", file}).out, HasSubstr(R"({"name":"first_loss"})"));
}

TEST_F(ClaimsCommand, AFailedRunIsUndecidedAndEndsWithCodeFour) {
  const std::string file = claim("c.json", R"({"above": 3, "refuted": {"below": 2}})");
  const Outcome good = run({file});
  const std::string broken = nlohmann::json::parse(good.out)[0]["runs"][1];
  std::filesystem::remove_all(broken);
  write_file_atomically(broken, "no folder");
  const Outcome outcome = run({file});
  EXPECT_EQ(outcome.code, 4) << outcome.err;
  const nlohmann::json verdict = nlohmann::json::parse(outcome.out)[0];
  EXPECT_EQ(verdict["verdict"], "undecided");
  EXPECT_THAT(std::string(verdict["reason"]), HasSubstr("a run failed"));
}

TEST_F(ClaimsCommand, RefusesBeforeAnyRun) {
  const std::string file = claim("c.json", R"({"above": 3, "refuted": {"below": 2}})", R"("model.heads": [2, 3], )");
  const Outcome outcome = run({file});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("c.json"), HasSubstr("model.heads")));
  EXPECT_FALSE(exists("out"));
  EXPECT_EQ(run_gradflow({"claims", "run"}).code, 2);
  EXPECT_EQ(run_gradflow({"claims", "run", "--all", "x"}).code, 2);
  const Outcome unknown = run_gradflow({"claims", "show", "a36-post-variance-grow"});
  EXPECT_EQ(unknown.code, 1);
  EXPECT_THAT(unknown.err, HasSubstr("did you mean a36-post-variance-grows?"));
}

TEST_F(ClaimsCommand, ListsAndShows) {
  const Outcome list = run_gradflow({"claims", "list"});
  EXPECT_EQ(list.code, 0) << list.err;
  EXPECT_THAT(list.out, HasSubstr("a36-post-variance-grows"));
  const Outcome shown = run_gradflow({"claims", "show", "a36-post-variance-grows"});
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_THAT(shown.out, AllOf(HasSubstr("Xiong"), HasSubstr("refuted from -0.1 to 0.1")));
  EXPECT_EQ(nlohmann::json::parse(run_gradflow({"claims", "list", "--json"}).out).is_array(), true);
}

TEST_F(ClaimsCommand, RunsChecks) {
  const Outcome outcome =
      run_gradflow({"claims", "run", "a44-alpha", "a28-rmsnorm-shift", "--json", "--out", folder_ / "out"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const nlohmann::json verdicts = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(verdicts[0]["verdict"], "reproduced");
  EXPECT_NEAR(static_cast<double>(verdicts[0]["value"]), 2.213364, 1e-6);
  EXPECT_EQ(verdicts[1]["verdict"], "reproduced");
}

TEST_F(ClaimsCommand, APartialRunKeepsTheOtherVerdictsAndNamesBothCommands) {
  const std::string one = claim("one.json", R"({"above": 3, "refuted": {"below": 2}})");
  const std::string two = claim("two.json", R"({"below": 2, "refuted": {"above": 3}})");
  ASSERT_EQ(run({one, two}).code, 0);
  ASSERT_EQ(run({"--jobs", "2", two}).code, 0);
  const std::string table = read_file(folder_ / "out/claims.csv"), text = read_file(folder_ / "out/claims.md");
  EXPECT_THAT(table, AllOf(HasSubstr("\none,tests,reproduced,"), HasSubstr("\ntwo,tests,refuted,")));
  EXPECT_THAT(text, AllOf(HasSubstr("one.json"), HasSubstr("two.json --jobs 2 --out ")));
  EXPECT_TRUE(exists("out/index.html"));
  EXPECT_TRUE(exists("out/pictures/topic-tests.svg"));
}

TEST_F(ClaimsCommand, JobsDoNotChangeTheNumbersOfChecks) {
  const Words ids{"claims", "run", "a2-bound", "a28-rmsnorm-scale", "b14-uniform-attention", "--json"};
  const auto verdicts = [&](const std::string& jobs) {
    const Outcome outcome = run_gradflow(ids + Words{"--jobs", jobs, "--out", folder_ / jobs});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    nlohmann::json json = nlohmann::json::parse(outcome.out);
    for (nlohmann::json& each : json) each.erase("seconds");
    return json;
  };
  EXPECT_EQ(verdicts("1"), verdicts("3"));
}

TEST_F(ClaimsCommand, ASignalDoesNotWaitForTheChecks) {
  std::string seeds = "1";
  for (int seed = 2; seed <= 100; ++seed) seeds += ", " + std::to_string(seed);
  const std::string file =
      write("slow.json",
            R"({"statement": "x", "source": "none", "topic": "tests", "expected": "refuted", "seconds": 300,
      "check": {"name": "matrix_product", "matrix": "spectral", "factor": 1, "width": 256, "layers": 32, "measure": "log10_gain"},
      "criterion": {"between": [-0.3, 0.3], "refuted": {"below": -8}}, "seeds": [)" +
                seeds + "]}");
  for (const int signal : {SIGTERM, SIGUSR1}) {
    RunningProgram program(GRADFLOW_PROGRAM, {"claims", "run", file, "--jobs", "1", "--out", folder_ / "out"});
    const std::string id = std::to_string(program.pid());
    const auto checks_began = [&] {
      std::ifstream children("/proc/" + id + "/task/" + id + "/children");
      pid_t child;
      return static_cast<bool>(children >> child);
    };
    for (int trial = 0; trial < 6000 && !checks_began(); ++trial)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ASSERT_TRUE(checks_began());
    program.kill(signal);  // the parent alone
    const auto sent = std::chrono::steady_clock::now();
    const Outcome outcome = program.wait();
    EXPECT_EQ(outcome.code, 75) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("interrupted"));
    // A few seconds are promised, and much for a busy machine; all the checks take minutes.
    EXPECT_LT(std::chrono::steady_clock::now() - sent, std::chrono::seconds(20));
    EXPECT_FALSE(exists("out/claims.csv"));
  }
}

}  // namespace
}  // namespace gradflow::testing
