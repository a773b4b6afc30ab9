// The whole program: its command line and its exit codes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>

#include "config/fields.h"
#include "testing/run_of_program.h"

namespace gradflow::testing {
namespace {

using namespace ::testing;

class CommandLine : public ProgramTest {};

TEST_F(CommandLine, HelpOfEveryCommandGoesToStandardOutput) {
  const Outcome program = run_gradflow({"--help"});
  EXPECT_EQ(program.code, 0);
  EXPECT_THAT(program.err, IsEmpty());
  for (const std::string command :
       {"run", "validate", "describe", "schema", "info", "sweep", "expand", "compare", "collect", "report"}) {
    EXPECT_THAT(program.out, HasSubstr("\n  " + command + " "));
    const Outcome help = run_gradflow({command, "--help"});
    EXPECT_EQ(help.code, 0) << command;
    EXPECT_THAT(help.out, HasSubstr("Usage: gradflow " + command)) << command;
    EXPECT_THAT(help.err, IsEmpty()) << command;
  }
  const std::string run = run_gradflow({"run", "--help"}).out;
  for (const char* option : {"CONFIG", "--set KEY=VALUE", "--out DIR", "--overwrite", "--resume", "--force", "--quiet",
                             "--threads N", "--device D"})
    EXPECT_THAT(run, HasSubstr(option));
}

TEST_F(CommandLine, VersionNamesProgramRevisionAndLibTorch) {
  const Outcome version = run_gradflow({"--version"});
  EXPECT_EQ(version.code, 0);
  EXPECT_TRUE(
      std::regex_match(version.out, std::regex(R"(gradflow \d+\.\d+\.\d+ \(git \S+\), LibTorch \d+\.\d+\S*\n)")))
      << version.out;
}

TEST_F(CommandLine, InfoNamesWhatNumbersDependOn) {
  const Outcome info = run_gradflow({"info"});
  EXPECT_EQ(info.code, 0);
  EXPECT_THAT(info.err, IsEmpty());
  for (const char* line : {"gradflow ", "LibTorch ", "BLAS ", "SIMD ", "CPU ", "threads ", "devices ", "CUDA "})
    EXPECT_TRUE(info.out.starts_with(line) || info.out.find(std::string("\n") + line) != std::string::npos)
        << line << "\n"
        << info.out;
}

TEST_F(CommandLine, SchemaIsJsonSchemaOfEveryKey) {
  const Outcome outcome = run_gradflow({"schema"});
  EXPECT_EQ(outcome.code, 0);
  const auto schema = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
  for (const auto& field : fields()) {
    std::string pointer = "/properties/" + std::string(field->key());
    for (std::size_t dot; (dot = pointer.find('.')) != std::string::npos;) pointer.replace(dot, 1, "/properties/");
    EXPECT_TRUE(schema.contains(nlohmann::json::json_pointer(pointer))) << pointer;
  }
}

TEST_F(CommandLine, ValidateSaysOkForEveryConfigurationOfTheProject) {
  Words paths;
  for (const auto& entry : std::filesystem::directory_iterator("configs"))
    if (entry.is_regular_file()) paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  std::string expected;
  for (const std::string& path : paths) expected += path + ": ok\n";
  const Outcome outcome = run_gradflow(Words{"validate"} + paths);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, expected);
  EXPECT_THAT(outcome.err, IsEmpty());
}

TEST_F(CommandLine, AWrongOneIsSaidInOneLineAndEndsWithTwo) {
  const std::string config = tiny();
  const struct {
    Words arguments;
    std::string line;
  } cases[] = {
      {{"trian", config}, "no command is called \"trian\"; there are run, validate"},
      {{"run"}, "CONFIG is required; see gradflow run --help"},
      {{"run", config, "--fast"}, "--fast; see gradflow run --help"},
      {{"run", config, "--threads", "many"}, "many"},
      {{"run", config, "--set", "depth"}, "--set depth: has no KEY=VALUE; write for example --set model.depth=24"},
      {{"run", config, config}, "see gradflow run --help"},
      {{"describe", config, "--out", "x"}, "--out"},
  };
  for (const auto& [arguments, line] : cases) {
    const Outcome outcome = run_gradflow(arguments, {.folder = folder_.path()});
    EXPECT_EQ(outcome.code, 2) << line;
    EXPECT_THAT(outcome.out, IsEmpty()) << line;
    EXPECT_THAT(outcome.error_lines(), ElementsAre(AllOf(StartsWith("gradflow: error: "), HasSubstr(line))));
  }
  EXPECT_FALSE(exists("results"));
  EXPECT_EQ(run_gradflow({}).code, 2);
}

TEST_F(CommandLine, StandardOutputThatCannotBeWrittenIsAnError) {
  for (const Words& arguments : {Words{"schema"}, {"describe", tiny()}, {"--version"}, {"--help"}, {"run", "--help"}}) {
    const Outcome outcome = run_gradflow(arguments, {.shell = "exec > /dev/full"});
    EXPECT_EQ(outcome.code, 1);
    EXPECT_THAT(outcome.error_lines(),
                ElementsAre(StartsWith("gradflow: error: standard output: cannot be written; ")));
  }
  // Where errors cannot be said either, the code still tells.
  EXPECT_EQ(run_gradflow({}, {.shell = "exec 2> /dev/full"}).code, 2);
}

TEST_F(CommandLine, TablesGoToStandardOutputAndProgressToStandardError) {
  const Outcome outcome = run_gradflow(command(tiny(), {"learning_rate=3e-6"}));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* row :
       {"verdict ", "loss ", "to compare ", "unigram entropy ", "entropy rate 1.213", "ln 16",
        "gradient norm, block 1 ", "gradient norm, block 2 ", "ratio first/last ", "smallest (block) ",
        "largest (block) ", "stream variance, block 1 ", "spikes ", "recording "})
    EXPECT_THAT(outcome.out, HasSubstr(row));
  EXPECT_THAT(outcome.out, HasSubstr("files in " + folder_ / "run"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("step 5/5")));
  // One short line, with significant digits: a learning rate of 3e-6 must not look like 0.
  EXPECT_THAT(outcome.error_lines(),
              ElementsAre(AllOf(StartsWith("step 5/5"), HasSubstr("loss "), HasSubstr("lr 3e-6 "), HasSubstr("grad "),
                                HasSubstr("spikes 0"), HasSubstr("tokens/s"), HasSubstr(" left"))));
  const std::string log = read_file(folder_ / "run/run.log");
  EXPECT_THAT(log, AllOf(HasSubstr("step 5/5"), HasSubstr("verdict ")));
}

TEST_F(CommandLine, QuietSaysNothing) {
  for (int time = 0; time < 2; ++time) {  // the second finds the run finished
    const Outcome outcome = run_gradflow(command(tiny(), {}) + Words{"--quiet"});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.out + outcome.err, "");
  }
  EXPECT_THAT(read_file(folder_ / "run/run.log"), HasSubstr("verdict "));
}

TEST_F(CommandLine, FaultsOfAnOptionThatSetsAKeyNameTheOption) {
  const auto only_line = [&](const Words& words) {
    const Outcome outcome = run_gradflow(command(tiny(), {}) + words);
    EXPECT_EQ(outcome.code, 1);
    return outcome.error_lines().size() == 1 ? outcome.error_lines()[0] : outcome.err;
  };
  EXPECT_THAT(only_line({"--threads", "0"}), StartsWith("gradflow: error: --threads: 0 is out of range"));
  EXPECT_THAT(only_line({"--device", "gpu"}), StartsWith("gradflow: error: --device: "));
  EXPECT_THAT(only_line({"--set", "compute.threads=0"}), StartsWith("gradflow: error: --set compute.threads: "));
}

TEST_F(CommandLine, OptionsForThreadsAndDeviceAreKeys) {
  const Outcome outcome = run_gradflow(command(tiny(), {}) + Words{"--threads", "2", "--device", "auto"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const auto config = RunFiles{folder_ / "run"}.json("config.json");
  EXPECT_EQ(config["compute"]["threads"], 2);
  EXPECT_EQ(config["compute"]["device"], "auto");
  const auto manifest = RunFiles{folder_ / "run"}.json("manifest.json");
  EXPECT_EQ(manifest["threads"], 2);
  if (!has_cuda()) {
    EXPECT_EQ(manifest["device"], "cpu");
  }
}

TEST_F(CommandLine, DescribeSaysWhatRunBuilds) {
  const Words overrides = {"placement=deepnorm", "weight_decay=0.1"};
  const RunFiles run = this->run(tiny(), overrides);
  const Outcome text = run_gradflow(Words{"describe", tiny()} + set(overrides));
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.err, IsEmpty());
  EXPECT_THAT(text.out, AllOf(HasSubstr("LayerNorm("), HasSubstr("Attention("), HasSubstr("final norm"),
                              HasSubstr("1.414214"), HasSubstr("0.5")));  // α = 4^¼, β = 16^-¼
  const Outcome outcome = run_gradflow(Words{"describe", tiny(), "--json"} + set(overrides));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const auto described = nlohmann::json::parse(outcome.out);
  auto resolved = run.json("config.json");
  EXPECT_EQ(described["derived"], resolved["derived"]);
  resolved.erase("derived");
  EXPECT_EQ(described["config"], resolved);
  const auto parameters = run.json("summary.json")["parameters"];
  EXPECT_EQ(described["decay_groups"]["decayed"]["elements"], parameters["decayed"]);
  EXPECT_EQ(described["decay_groups"]["not_decayed"]["elements"], parameters["not_decayed"]);
  EXPECT_GT(parameters["decayed"], 0);
  EXPECT_GT(parameters["not_decayed"], 0);
  EXPECT_EQ(parameters["count"].get<int>(), parameters["decayed"].get<int>() + parameters["not_decayed"].get<int>());
}

TEST_F(CommandLine, DescribeShowsTheFormulaOfABlock) {
  const std::string text = run_gradflow({"describe", "configs/quickstart.json"}).out;
  EXPECT_THAT(text, HasSubstr("x + Attention(LayerNorm(x))"));
  EXPECT_THAT(text, HasSubstr("x + FeedForward(LayerNorm(x))"));
}

}  // namespace
}  // namespace gradflow::testing
