// The whole program: its command line, its exit codes, what it says of bad input, and what it leaves on the disk.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "config/fields.h"
#include "output/run_folder.h"
#include "testing/run_of_program.h"

namespace gradflow {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::lines_of;
using ::testing::Not;
using testing::Outcome;
using testing::run_gradflow;
using testing::RunFiles;
using testing::RunningProgram;
using ::testing::StartsWith;
using testing::Words;
using testing::operator+;

class CommandLine : public testing::ProgramTest {};
class BadInput : public testing::ProgramTest {};
class RunFolders : public testing::ProgramTest {};

/// Waits until the condition holds; false when it does not within half a minute.
bool in_time(const std::function<bool()>& condition) {
  for (int trial = 0; trial < 600; ++trial) {
    if (condition()) return true;
    std::this_thread::sleep_for(50ms);
  }
  return false;
}

bool has_cuda() { return run_gradflow({"info"}).out.find("cuda:0") != std::string::npos; }

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

// ---- command line
// -------------------------------------------------------------------------------------------------------

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
  for (const Words& arguments : {Words{"schema"}, Words{"describe", tiny()}}) {
    const Outcome outcome = run_gradflow(arguments, {.shell = "exec > /dev/full"});
    EXPECT_EQ(outcome.code, 1);
    EXPECT_THAT(outcome.error_lines(),
                ElementsAre(StartsWith("gradflow: error: standard output: cannot be written; ")));
  }
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

// ---- bad input
// ----------------------------------------------------------------------------------------------------------

struct Fault {
  std::string text;    ///< of the configuration file
  int line;            ///< where it is
  std::string key;     ///< empty: the text is no JSON, and there is no key
  std::string what;    ///< a part of what is said
  std::string remedy;  ///< a part of what is advised
};

const Fault faults[] = {
    {"{\"model\":\n{\"dept\": 3}}", 2, "model.dept", "unknown key", "did you mean model.depth?"},
    {"{\n\n\"warm_up\": 100}", 3, "warm_up", "unknown key",
     "did you mean train.warmup, written \"train\": {\"warmup\""},
    {"{\"train\": {\"steps\": 3,\n\"steps\": 4}}", 2, "train.steps", "repeated, first written on line 1", "keep one"},
    {"{\"train\": {\"learning_rate\": \"1e-3\"}}", 1, "train.learning_rate", "must be a number, got a string",
     "write 1e-3 without quotes"},
    {"{\"train\": {\"warmup\": 0.1}}", 1, "train.warmup", "0.1", "a whole number of optimizer steps"},
    {"{\"model\": {\"depth\": 3.7}}", 1, "model.depth", "3.7", "a whole number of blocks"},
    {"{\"model\": {\"depth\": true}}", 1, "model.depth", "got true", "a whole number of blocks"},
    {"{\"train\": {\"steps\": 0}}", 1, "train.steps", "out of range", "at least 1"},
    {"{\"train\": {\"learning_rate\":\n1e999}}", 1, "train.learning_rate", "not finite", "write a number"},
    {"{\"model\": {\"width\": 8,\n\"heads\": 3}}", 2, "model.heads", "3 does not divide model.width 8",
     "write a divisor: 1, 2, 4, 8"},
    {"{\"model\": {\"placement\": \"prenorm\"}}", 1, "model.placement", "\"prenorm\" is not a choice", "write one of"},
    {"{\"compute\": {\"dtype\": \"float16\"}}", 1, "compute.dtype", "\"float16\" is not a choice",
     "write one of float32, float64, bfloat16"},
    {"{\"data\": {\"task\": \"text\",\n\"files\": [\"none.txt\"]}}", 2, "data.files", "\"none.txt\" does not exist",
     "relative to the configuration file"},
    {"{\"data\": {\"task\": \"text\"}}", 1, "data.files", "has no file", "\"files\": [\"my.txt\"]"},
    {"{\"data\": {\"task\": \"text\", \"files\": [\"short.txt\"],\n\"context\": 64}}", 2, "data.context", "too few",
     "give more text in data.files, or write a smaller data.context"},
    {"{\"data\": {\"task\": \"text\", \"files\": [\"long.txt\"],\n\"vocabulary\": 10}}", 2, "data.vocabulary",
     "10 symbols are too few", "write 122 or more"},
    {"{\"data\": {\"vocabulary\": 3}}", 1, "data.successors", "4 successors cannot differ in a vocabulary of 3",
     "write at most 3"},
    {"{\"model\": {\"norm\": \"none\",\n\"final_norm\": true}}", 2, "model.final_norm", "model.norm is none",
     "choose a norm"},
    {"{\"compute\": {\"device\": \"gpu\"}}", 1, "compute.device", "\"gpu\" is no device", "write cpu, cuda"},
    {"{\"record\": {\"quantities\": [\"grad\"]}}", 1, "record.quantities", "\"grad\" is no quantity",
     "write none, standard, all"},
    {"{\"model\": {\"depth\": 2},\n}", 1, "", "trailing comma", "remove it"},
    {"{\"model\": {\"depth\": 2}\n\"train\": {}}", 2, "", "neither a comma nor a closing bracket", "write a comma"},
    {"[]", 1, "", "must be an object, got a list", "write {}"},
    {"", 1, "", "the file is empty", "write {}"},
};

TEST_F(BadInput, EachFaultIsOneLineWithFileLineKeyAndRemedy) {
  write("short.txt", "too short a text");
  write("long.txt", std::string(500, 'y'));  // 'y' is byte 121
  Words paths;
  std::vector<::testing::Matcher<std::string>> expected;
  for (const Fault& fault : faults) {
    paths.push_back(write("fault" + std::to_string(paths.size()) + ".json", fault.text));
    const std::string start = "gradflow: error: " + paths.back() + ":" + std::to_string(fault.line) + ": " +
                              (fault.key.empty() ? "" : fault.key + ": ");
    const std::size_t after = start.size();
    expected.push_back(AllOf(StartsWith(start), HasSubstr("; "), HasSubstr(fault.what), HasSubstr(fault.remedy),
                             ::testing::ResultOf([after](const std::string& line) { return line.size(); },
                                                 ::testing::Gt(after + fault.what.size()))));
  }
  const Outcome outcome = run_gradflow(Words{"validate"} + paths);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.out, IsEmpty());
  EXPECT_THAT(outcome.error_lines(), ::testing::ElementsAreArray(expected));
}

TEST_F(BadInput, RunRefusesWhatValidateRefusesAndLeavesNoFolder) {
  write("short.txt", "too short a text");
  const Words texts = {"{\"model\": {\"width\": 8,\n\"heads\": 3}}", "{",
                       "{\"data\": {\"task\": \"text\", \"files\": [\"short.txt\"]}}"};
  for (const std::string& text : texts) {
    const std::string config = write("fault.json", text);
    const Outcome outcome = run_gradflow({"run", config, "--out", folder_ / "study/run"});
    EXPECT_EQ(outcome.code, 1) << text;
    EXPECT_THAT(outcome.error_lines(), ElementsAre(StartsWith("gradflow: error: " + config + ":"))) << text;
    EXPECT_THAT(outcome.out, IsEmpty());
    EXPECT_EQ(outcome.err, run_gradflow({"validate", config}).err);
    EXPECT_FALSE(exists("study")) << text;
  }
  EXPECT_EQ(run_gradflow({"run", folder_ / "fault.json"}, {.folder = folder_.path()}).code, 1);
  EXPECT_FALSE(exists("results"));
}

TEST_F(BadInput, AllFaultsOfAFileAndOfTheOptionsAreInOneReport) {
  const std::string config =
      write("many.json",
            "{\"model\": {\"dept\": 3,\n\"width\": 8, \"heads\": 3},\n\"train\": {\"steps\": 0},\n"
            "\"data\": {\"task\": \"text\", \"files\": [\"none.txt\"]}}");
  const Outcome outcome = run_gradflow(command(config, {"depht=3", "train.batch=many"}));
  EXPECT_EQ(outcome.code, 1);
  const std::string start = "gradflow: error: " + config;
  EXPECT_THAT(outcome.error_lines(),
              ElementsAre(StartsWith(start + ":1: model.dept: "), StartsWith(start + ":2: model.heads: "),
                          StartsWith(start + ":3: train.steps: "), StartsWith(start + ":4: data.files: "),
                          AllOf(StartsWith("gradflow: error: --set depht: unknown key"), HasSubstr("model.depth")),
                          StartsWith("gradflow: error: --set train.batch: must be ")));
  EXPECT_FALSE(exists("run"));
}

TEST_F(BadInput, OnlyANearWordIsSuggested) {
  const auto said = [&](const std::string& quantity) {
    return run_gradflow({"validate", tiny(), "--set", "quantities=" + quantity}).err;
  };
  EXPECT_THAT(said("stream_var"), HasSubstr("the nearest is stream_variance"));
  EXPECT_THAT(said("grad_norms"), HasSubstr("the nearest is grad_norm)"));
  EXPECT_THAT(said("grad"), Not(HasSubstr("nearest is cka")));
}

TEST_F(BadInput, AMissingConfigurationIsNamed) {
  const Outcome outcome = run_gradflow({"run", folder_ / "none.json"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.error_lines(),
              ElementsAre(AllOf(StartsWith("gradflow: error: " + folder_ / "none.json" + ": cannot be read ("),
                                HasSubstr("; "))));
}

TEST_F(BadInput, CommentsAndAByteOrderMarkAreNone) {
  const std::string config =
      write("comments.json", "\xEF\xBB\xBF// a line\n{/* here */ \"model\": {\"depth\": 1e0}}\n// and behind\n");
  EXPECT_EQ(run_gradflow({"validate", config}).code, 0);
}

TEST_F(BadInput, CudaThatIsNotThereIsRefusedBeforeTraining) {
  if (has_cuda()) GTEST_SKIP() << "a CUDA device is there";
  const Outcome outcome = run_gradflow(command(tiny(), {}) + Words{"--device", "cuda"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.error_lines(), ElementsAre(AllOf(StartsWith("gradflow: error: --device: "), HasSubstr("\"cuda\""),
                                                       HasSubstr("; write \"cpu\", or \"auto\""))));
  EXPECT_FALSE(exists("run"));
}

TEST_F(BadInput, OutputThatCannotBeWrittenIsRefusedBeforeTraining) {
  const std::string file = write("file", "mine");
  create_folders(folder_ / "full");
  write("full/notes.txt", "mine");
  const struct {
    std::string out;
    std::string fault;
  } cases[] = {{file, ": is a file, not a folder; choose another folder with --out"},
               {file + "/run", ": cannot be created ("},
               {"/proc/gradflow/run", ": cannot be created ("},
               {folder_ / "full", ": holds other files and no run; choose a new or an empty folder with --out"}};
  for (const auto& [out, fault] : cases) {
    const Outcome outcome = run_gradflow({"run", tiny(), "--out", out});
    EXPECT_EQ(outcome.code, 1) << out;
    EXPECT_THAT(outcome.error_lines(),
                ElementsAre(AllOf(StartsWith("gradflow: error: " + out + fault), HasSubstr("; "))));
    EXPECT_THAT(outcome.out, IsEmpty());
  }
  EXPECT_EQ(read_file(file), "mine");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_ / "full"), {}), 1);
}

TEST_F(BadInput, MoreMemoryThanThereIsIsRefusedUnlessForced) {
  const Words overrides = {"depth=100", "width=16384", "steps=1"};  // 1.3 TB of weights
  const Outcome refused = run_gradflow(command(tiny(), overrides));
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.error_lines(), ElementsAre(AllOf(StartsWith("gradflow: error: the run needs about "),
                                                       HasSubstr("lower model.depth"), HasSubstr("--force"))));
  EXPECT_FALSE(exists("run"));
  const Outcome validated = run_gradflow(Words{"validate", tiny()} + set(overrides));
  EXPECT_EQ(validated.code, 1);
  EXPECT_THAT(
      validated.error_lines(),
      ElementsAre(AllOf(StartsWith("gradflow: error: " + tiny() + ": the run needs about "), HasSubstr("--force"))));

  const Outcome forced = run_gradflow(command(tiny(), overrides) + Words{"--force"}, {.shell = "ulimit -v 30000000"});
  EXPECT_EQ(forced.code, 1);
  EXPECT_THAT(forced.error_lines(), ElementsAre(StartsWith("gradflow: error: not enough memory; lower model.depth")));
  const auto manifest = RunFiles{folder_ / "run"}.json("manifest.json");
  EXPECT_EQ(manifest["status"], "failed");
  EXPECT_THAT(manifest["reason"].get<std::string>(), HasSubstr("memory"));
}

TEST_F(BadInput, ADiskThatFillsUpDuringTheRunIsAnError) {
  const Words overrides = {"steps=2000", "layers_every=1"};
  const Outcome outcome = run_gradflow(command(tiny(), overrides) + Words{"--quiet"},
                                       {.shell = "trap '' XFSZ; ulimit -f 200"});  // at most 200 kB a file
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.error_lines(),
              ElementsAre(AllOf(StartsWith("gradflow: error: " + folder_ / "run/layers.csv" + ": cannot be written ("),
                                HasSubstr("; "))));
  const RunFiles run{folder_ / "run"};
  const auto manifest = run.json("manifest.json");
  EXPECT_EQ(manifest["status"], "failed");
  EXPECT_THAT(manifest["reason"].get<std::string>(), HasSubstr("layers.csv"));
  EXPECT_THAT(read_file(run.file("layers.csv")), EndsWith("\n"));  // whole rows
}

// ---- run folders
// --------------------------------------------------------------------------------------------------------

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
  EXPECT_EQ(testing::integers(run.layers(), "layer").back(), 4);
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
}  // namespace gradflow
