// The whole program: what it says of bad input, and that it leaves nothing behind.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

#include "testing/run_of_program.h"

namespace gradflow::testing {
namespace {

using namespace ::testing;

class BadInput : public ProgramTest {};

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
  std::vector<Matcher<std::string>> expected;
  for (const Fault& fault : faults) {
    paths.push_back(write("fault" + std::to_string(paths.size()) + ".json", fault.text));
    const std::string start = "gradflow: error: " + paths.back() + ":" + std::to_string(fault.line) + ": " +
                              (fault.key.empty() ? "" : fault.key + ": ");
    const std::size_t after = start.size();
    expected.push_back(
        AllOf(StartsWith(start), HasSubstr("; "), HasSubstr(fault.what), HasSubstr(fault.remedy),
              ResultOf([after](const std::string& line) { return line.size(); }, Gt(after + fault.what.size()))));
  }
  const Outcome outcome = run_gradflow(Words{"validate"} + paths);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.out, IsEmpty());
  EXPECT_THAT(outcome.error_lines(), ElementsAreArray(expected));
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

}  // namespace
}  // namespace gradflow::testing
