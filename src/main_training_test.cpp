// The whole program: what a run writes, and that the numbers in it keep the project's promises.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "output/run_folder.h"
#include "testing/run_of_program.h"

namespace gradflow {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using testing::column;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::integers;
using ::testing::IsEmpty;
using testing::lines_of;
using ::testing::Not;
using testing::number;
using testing::Outcome;
using testing::run_gradflow;
using testing::RunFiles;
using ::testing::StartsWith;
using testing::Words;
using testing::operator+;

constexpr std::string_view measured_columns[] = {"norm_input_rms",   "stream_mean", "stream_variance", "stream_rms",
                                                 "stream_grad_norm", "branch_rms",  "branch_ratio"};
constexpr std::string_view detail_columns[] = {
    "branch_cosine", "branch_variance_gain", "token_norm_cv",   "branch_norm_cv",    "mean_share",
    "dual_rms",      "stream_grad_cosine",   "dual_grad_norm",  "attention_entropy", "attention_logit_max",
    "zero_fraction", "angular_distance",     "skip_grad_share", "token_diversity_db"};

class Quickstart : public testing::ProgramTest {};
class Training : public testing::ProgramTest {
 protected:
  /// A text to train on, and a configuration for it.
  std::string text_config(const std::string& text) {
    write("text.txt", text);
    return write("text.json",
                 R"({"model": {"depth": 1, "width": 8, "heads": 2}, "data": {"task": "text", "context": 8,)"
                 R"( "files": ["text.txt"]}, "train": {"steps": 3, "batch": 4}})");
  }
};
class Nonfinite : public testing::ProgramTest {
 protected:
  /// An update that throws the weights as far as a float reaches.
  static Words diverging(const Words& more = {}) { return Words{"optimizer=sgd", "learning_rate=1e30"} + more; }
};
class Recording : public testing::ProgramTest {};

/// The files of a run that must be the same, byte for byte, when it is run again.
Words repeatable_files(const RunFiles& run) {
  Words names;
  for (const auto& entry : std::filesystem::directory_iterator(run.path)) {
    const std::string name = entry.path().filename().string();
    if ((name.ends_with(".csv") && name != "timing.csv") || name == "config.json") names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

void expect_same_files(const RunFiles& a, const RunFiles& b) {
  const Words names = repeatable_files(a);
  EXPECT_EQ(names, repeatable_files(b));
  EXPECT_THAT(names, ::testing::IsSupersetOf({"config.json", "layers.csv", "spikes.csv", "steps.csv"}));
  for (const std::string& name : names) EXPECT_EQ(read_file(a.file(name)), read_file(b.file(name))) << name;
}

/// Rows of layers.csv with these values; each must occur.
std::vector<std::size_t> rows_of(const CsvTable& layers, std::int64_t step, std::int64_t layer) {
  std::vector<std::size_t> rows;
  for (std::size_t row = 0; row < layers.rows(); ++row)
    if (layers.integer(row, layers.column("step")) == step && layers.integer(row, layers.column("layer")) == layer)
      rows.push_back(row);
  EXPECT_FALSE(rows.empty()) << "no row for step " << step << ", layer " << layer;
  return rows;
}

double block_grad_norm(const CsvTable& layers, std::int64_t step, std::int64_t block) {
  double squares = 0;
  for (const std::size_t row : rows_of(layers, step, block)) squares += std::pow(number(layers, row, "grad_norm"), 2);
  return std::sqrt(squares);
}

/// √(Σ grad_norm²) over the rows of each step equals grad_norm of steps.csv.
void expect_global_norm_is_that_of_the_rows(const RunFiles& run) {
  const CsvTable steps = run.steps(), layers = run.layers();
  std::map<std::int64_t, double> squares;
  for (std::size_t row = 0; row < layers.rows(); ++row)
    squares[layers.integer(row, layers.column("step"))] += std::pow(number(layers, row, "grad_norm"), 2);
  EXPECT_FALSE(squares.empty());
  std::size_t met = 0;
  for (std::size_t row = 0; row < steps.rows(); ++row) {
    const auto found = squares.find(steps.integer(row, steps.column("step")));
    if (found == squares.end()) continue;
    const double norm = number(steps, row, "grad_norm");
    EXPECT_NEAR(std::sqrt(found->second), norm, 1e-9 * norm) << "step " << found->first;
    ++met;
  }
  EXPECT_EQ(met, squares.size());
}

// ---- the first run
// ------------------------------------------------------------------------------------------------------

TEST_F(Quickstart, LearnsAndWritesAllItsFiles) {
  const RunFiles run = this->run("configs/quickstart.json", {});
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(run.path)) names.insert(entry.path().filename());
  EXPECT_EQ(names, (std::set<std::string>{"checkpoint", "config.json", "layers.csv", "lock", "manifest.json", "run.log",
                                          "spikes.csv", "steps.csv", "summary.json", "timing.csv"}));

  const CsvTable steps = run.steps(), layers = run.layers();  // these check the headers
  read_csv(run.file("spikes.csv"), spikes_columns());
  EXPECT_EQ(read_csv(run.file("timing.csv"), timing_columns()).rows(), 200u);
  ASSERT_EQ(steps.rows(), 200u);
  for (std::size_t row = 0; row < 200; ++row) {
    EXPECT_EQ(steps.integer(row, 0), static_cast<std::int64_t>(row + 1));
    EXPECT_EQ(number(steps, row, "tokens"), 512.0 * static_cast<double>(row + 1));
  }
  // Steps 1, 10, 20, … 200; embedding, 12 × (attention, ffn), final norm, head; the layer is a whole number, so that 10
  // comes after 9.
  ASSERT_EQ(layers.rows(), 21u * 27u);
  std::vector<std::int64_t> expected;
  for (std::int64_t step = 0; step <= 200; step += 10) {
    expected.push_back(0);
    for (std::int64_t block = 1; block <= 12; ++block) expected.insert(expected.end(), {block, block});
    expected.insert(expected.end(), {13, 13});
  }
  EXPECT_EQ(integers(layers, "layer"), expected);
  for (std::size_t row = 0; row < layers.rows(); ++row)
    EXPECT_EQ(layers.integer(row, 0), std::max<std::int64_t>(1, static_cast<std::int64_t>(row / 27) * 10));

  const auto summary = run.json("summary.json");
  EXPECT_EQ(summary["verdict"], "learned");
  EXPECT_NEAR(summary["final_loss"].get<double>(), 1.7, 0.15);
  EXPECT_NEAR(summary["unigram_entropy"].get<double>(), 3.95, 0.05);
  EXPECT_NEAR(summary["entropy_rate"].get<double>(), 1.75 * std::log(2), 1e-9);  // ½·1 + ¼·2 + 2·⅛·3 bits
  EXPECT_NEAR(summary["log_vocabulary"].get<double>(), std::log(64), 1e-12);
  EXPECT_EQ(summary["first_loss"].get<double>(), number(steps, 0, "loss"));
  double last = 0;
  for (std::size_t row = 180; row < 200; ++row) last += number(steps, row, "loss") / 20;
  EXPECT_NEAR(summary["final_loss"].get<double>(), last, 1e-12);
  EXPECT_EQ(summary["parameters"]["tensors_without_gradient"], 0);
  EXPECT_EQ(run.json("manifest.json")["status"], "finished");
  expect_global_norm_is_that_of_the_rows(run);
}

TEST_F(Quickstart, StaysAtTheUnigramEntropyWithPostNorm) {
  const auto summary = run("configs/quickstart.json", {"placement=post"}).json("summary.json");
  EXPECT_EQ(summary["verdict"], "stuck");
  EXPECT_NEAR(summary["final_loss"].get<double>(), summary["unigram_entropy"].get<double>(), 0.05);
}

TEST_F(Quickstart, LearnsWithDeepNorm) {
  const auto summary = run("configs/quickstart.json", {"placement=deepnorm"}).json("summary.json");
  EXPECT_EQ(summary["verdict"], "learned");
  EXPECT_NEAR(summary["final_loss"].get<double>(), 1.7, 0.15);
}

// ---- the same again
// -----------------------------------------------------------------------------------------------------

TEST_F(Training, TheSameRunTwiceWritesTheSameBytes) {
  const Words overrides = {"dropout=0.1", "tensors=true", "layers_every=1", "evaluate_every=2"};
  expect_same_files(run(tiny(), overrides, "first"), run(tiny(), overrides, "second"));
  const RunFiles other = run(tiny(), overrides + Words{"seed=2"}, "third");
  EXPECT_NE(read_file(folder_ / "first/steps.csv"), read_file(other.file("steps.csv")));
}

TEST_F(Training, AResolvedConfigurationRepeatsItsRun) {
  const RunFiles markov =
      run(tiny(), {"placement=deepnorm", "betas=[0.8, 0.9]", "learning_rate=0.1e-2", "warmup=2"}, "markov");
  expect_same_files(markov, run(markov.file("config.json"), {}, "markov again"));
  // A text is found from anywhere, for its path is absolute in the resolved file.
  const RunFiles text = run(text_config(std::string(50, 'a') + std::string(50, 'b')), {"tokenizer=character"}, "text");
  EXPECT_EQ(text.json("config.json")["data"]["files"][0], folder_ / "text.txt");
  const Outcome again =
      run_gradflow({"run", text.file("config.json"), "--out", folder_ / "text again"}, {.folder = "/"});
  EXPECT_EQ(again.code, 0) << again.err;
  expect_same_files(text, {folder_ / "text again"});
}

TEST_F(Training, TheDataDoNotChangeTheInitialWeights) {
  const auto weight_norms = [&](const Words& overrides, const std::string& out) {
    return column(run(tiny(), overrides + Words{"learning_rate=0", "steps=1", "tensors=true"}, out).tensors(),
                  "weight_norm");
  };
  const Words markov = weight_norms({}, "markov");
  EXPECT_EQ(weight_norms({"task=random"}, "random"), markov);
  EXPECT_EQ(weight_norms({"data.seed=5"}, "chain"), markov);
  EXPECT_EQ(weight_norms({"batch=2"}, "batch"), markov);
  EXPECT_NE(weight_norms({"seed=2"}, "seed"), markov);
}

// ---- what a run records
// -------------------------------------------------------------------------------------------------

TEST_F(Recording, ChangesNothingThatAnotherRecordingShows) {
  const RunFiles everything =
      run(tiny(), {"backend=aten", "layers_every=1", "tensors=true", "quantities=all"}, "everything");
  const CsvTable all_layers = everything.layers();
  const Words all_steps = lines_of(everything.file("steps.csv"));
  std::map<std::pair<std::string, std::pair<std::string, std::string>>, std::size_t> row_of;
  const auto key = [](const CsvTable& layers, std::size_t row) {
    return std::pair(std::string(layers.text(row, 0)),
                     std::pair(std::string(layers.text(row, 1)), std::string(layers.text(row, 2))));
  };
  for (std::size_t row = 0; row < all_layers.rows(); ++row) row_of[key(all_layers, row)] = row;

  const std::set<std::string> details(std::begin(detail_columns), std::end(detail_columns));
  const auto all_but = [&](const std::set<std::string>& filled) {
    std::set<std::string> empty = details;
    empty.insert(std::begin(measured_columns), std::end(measured_columns));
    for (const std::string& column : filled) empty.erase(column);
    return empty;
  };
  const struct {
    std::string name;
    Words overrides;
    std::set<std::string> empty;  ///< measured columns that are not filled
    std::vector<std::int64_t> step_rows, layer_steps;
  } cases[] = {
      {"none", {"quantities=none", "layers_every=1"}, all_but({}), {1, 2, 3, 4, 5}, {1, 2, 3, 4, 5}},
      {"one", {"quantities=stream_rms"}, all_but({"stream_rms"}), {1, 2, 3, 4, 5}, {1, 5}},
      {"inside",
       {R"(quantities=["attention_entropy","skip_grad_share"])"},
       all_but({"attention_entropy", "skip_grad_share"}),
       {1, 2, 3, 4, 5},
       {1, 5}},
      {"seldom", {"steps_every=3", "layers_every=2"}, details, {1, 3, 5}, {1, 2, 4, 5}},
      {"spikes",
       {"spikes.window=16", "min_count=2", "level_window=1", "threshold=1e9"},
       details,
       {1, 2, 3, 4, 5},
       {1, 5}},
  };
  for (const auto& [name, overrides, empty, step_rows, layer_steps] : cases) {
    SCOPED_TRACE(name);
    const RunFiles run = this->run(tiny(), Words{"backend=aten"} + overrides, name);
    const Words steps = lines_of(run.file("steps.csv"));
    EXPECT_EQ(integers(run.steps(), "step"), step_rows);
    for (const std::string& line : steps) EXPECT_THAT(all_steps, ::testing::Contains(line));
    const CsvTable layers = run.layers();
    const std::vector<std::int64_t> of_rows = integers(layers, "step");
    EXPECT_EQ(std::set<std::int64_t>(of_rows.begin(), of_rows.end()),
              std::set<std::int64_t>(layer_steps.begin(), layer_steps.end()));
    for (std::size_t row = 0; row < layers.rows(); ++row)
      for (std::size_t c = 0; c < layers.columns().size(); ++c)
        EXPECT_EQ(layers.text(row, c),
                  empty.contains(layers.columns()[c]) ? "" : all_layers.text(row_of.at(key(layers, row)), c))
            << "row " << row << ", " << layers.columns()[c];
    EXPECT_FALSE(run.has("tensors.csv"));
  }
}

TEST_F(Recording, ChangesNothingOfARunOfTheFusedBackend) {
  const Words fused = {"backend=fused", "steps_every=1"};
  const auto steps = [&](const std::string& name, const Words& overrides) {
    return lines_of(run(tiny(), fused + overrides, name).file("steps.csv"));
  };
  const Words plain = steps("plain", {});
  EXPECT_EQ(steps("none", {"quantities=none"}), plain);
  EXPECT_EQ(steps("often", {"layers_every=1", "tensors=true"}), plain);
  EXPECT_EQ(steps("boundaries", {R"(quantities=["standard","angular_distance","token_diversity_db"])"}), plain);
}

TEST_F(Recording, GlobalGradientNormIsThatOfTheRows) {
  const Words every_step = {"layers_every=1"};
  expect_global_norm_is_that_of_the_rows(run(tiny(), every_step, "pre"));
  expect_global_norm_is_that_of_the_rows(
      run(tiny(), every_step + Words{"accumulation=3", "clip_norm=0.01"}, "clipped"));
  expect_global_norm_is_that_of_the_rows(run(tiny(), every_step + Words{"placement=post", "dtype=float64"}, "double"));
}

TEST_F(Recording, AVanishedGradientIsLoggedAsItIs) {
  const RunFiles run = this->run("configs/no-residual.json", {"steps=1"});
  const CsvTable layers = run.layers();
  const double first = block_grad_norm(layers, 1, 1);
  EXPECT_GT(first, 1e-26);
  EXPECT_LT(first, 1e-23);
  for (std::int64_t block = 1; block <= 8; ++block)
    for (const std::size_t row : rows_of(layers, 1, block)) EXPECT_GT(number(layers, row, "grad_norm"), 0);
  // Without a skip and a norm there is nothing to say of branch and norm.
  for (const char* name : {"norm_input_rms", "branch_rms", "branch_ratio"})
    EXPECT_THAT(column(layers, name), Each(std::string())) << name;
}

TEST_F(Recording, FlushedDenormalsAreGoneAndTheManifestSaysSo) {
  // Five blocks deeper every element of the gradient of block 1 is below 1.2e-38.
  const Words overrides = {"steps=1", "depth=13"};
  const RunFiles kept = run("configs/no-residual.json", overrides, "kept");
  const RunFiles flushed =
      run("configs/no-residual.json", overrides + Words{"compute.flush_denormals=true"}, "flushed");
  EXPECT_GT(block_grad_norm(kept.layers(), 1, 1), 0);
  EXPECT_EQ(block_grad_norm(flushed.layers(), 1, 1), 0);
  EXPECT_EQ(flushed.json("manifest.json")["flush_denormals"], true);
}

TEST_F(Recording, ReZeroStartsAsTheIdentity) {
  const Words short_run = {"steps=2", "tensors=true", "layers_every=1", "width=16"};
  const RunFiles shallow = run("configs/rezero.json", short_run + Words{"depth=2"}, "shallow");
  const RunFiles deep = run("configs/rezero.json", short_run + Words{"depth=16"}, "deep");
  EXPECT_EQ(column(shallow.steps(), "loss")[0], column(deep.steps(), "loss")[0]);

  // With the gates at 0 nothing but the gates of the blocks has a gradient, and each of them has one.
  std::map<std::string, double> gates;
  const CsvTable tensors = deep.tensors(), layers = deep.layers();
  for (std::size_t row = 0; row < tensors.rows() && tensors.integer(row, 0) == 1; ++row) {
    const std::string name(tensors.text(row, 1));
    const double gradient = number(tensors, row, "grad_norm");
    if (!name.starts_with("block.")) continue;
    if (name.ends_with(".residual.scale"))
      gates[name] = gradient;
    else
      EXPECT_EQ(gradient, 0) << name;
  }
  EXPECT_EQ(gates.size(), 32u);
  for (std::int64_t block = 1; block <= 16; ++block)
    for (const std::size_t row : rows_of(layers, 1, block)) {
      const double gate = gates.at("block." + std::to_string(block) + "." +
                                   std::string(layers.text(row, layers.column("sublayer"))) + ".residual.scale");
      EXPECT_GT(gate, 0);
      EXPECT_EQ(number(layers, row, "grad_norm"), gate);
      EXPECT_EQ(number(layers, row, "branch_rms"), 0);
    }
  // Once the gates are open, everything has.
  EXPECT_EQ(deep.json("summary.json")["parameters"]["tensors_without_gradient"], 0);
}

TEST_F(Recording, TiedEmbeddingsCountInTheEmbedding) {
  const auto head = [&](const Words& overrides, const std::string& out) {
    const CsvTable layers = run(tiny(), overrides, out).layers();
    const std::size_t row = rows_of(layers, 1, 3).back();
    EXPECT_EQ(layers.text(row, 2), "head");
    Words cells;
    for (std::size_t c = 3; c < layers.columns().size(); ++c) cells.emplace_back(layers.text(row, c));
    return cells;
  };
  EXPECT_THAT(head({"tie_embeddings=true"}, "tied"), Each(std::string()));
  EXPECT_THAT(head({}, "untied")[0], Not(IsEmpty()));
}

TEST_F(Recording, TheFinalNormHasARowWhereThereIsOne) {
  const auto rows_after_the_blocks = [&](const Words& overrides, const std::string& out) {
    const CsvTable layers = run(tiny(), overrides + Words{"steps=1"}, out).layers();
    Words names;
    for (const std::size_t row : rows_of(layers, 1, 3)) names.emplace_back(layers.text(row, 2));
    return names;
  };
  EXPECT_THAT(rows_after_the_blocks({}, "pre"), ElementsAre("final_norm", "head"));
  EXPECT_THAT(rows_after_the_blocks({"final_norm=false"}, "without"), ElementsAre("head"));
  EXPECT_THAT(rows_after_the_blocks({"placement=post"}, "post"), ElementsAre("head"));
  EXPECT_THAT(rows_after_the_blocks({"placement=post", "final_norm=true"}, "with"), ElementsAre("final_norm", "head"));
}

TEST_F(Recording, EvaluationStandsAtItsStepsAndIsAlwaysRecorded) {
  const CsvTable steps = run(tiny(), {"steps=7", "steps_every=5", "evaluate_every=3"}).steps();
  EXPECT_THAT(integers(steps, "step"), ElementsAre(1, 3, 5, 6, 7));
  std::vector<std::int64_t> evaluated;
  for (std::size_t row = 0; row < steps.rows(); ++row)
    if (!steps.text(row, steps.column("eval_loss")).empty()) evaluated.push_back(steps.integer(row, 0));
  EXPECT_THAT(evaluated, ElementsAre(1, 3, 6, 7));
  EXPECT_THAT(column(run(tiny(), {}, "without").steps(), "eval_loss"), Each(std::string()));
}

// ---- schedule, clipping, data
// -------------------------------------------------------------------------------------------

TEST_F(Training, WarmUpWastesNoStepAndCountsOptimizerSteps) {
  const Words overrides = {"learning_rate=0.1", "warmup=4"};
  const CsvTable steps = run(tiny(), overrides, "one").steps();
  for (std::size_t row = 0; row < 5; ++row)
    EXPECT_DOUBLE_EQ(number(steps, row, "learning_rate"), 0.1 * std::min(1.0, static_cast<double>(row + 1) / 4));
  EXPECT_GT(number(steps, 0, "update_norm"), 0);
  const CsvTable accumulated = run(tiny(), overrides + Words{"accumulation=4"}, "four").steps();
  EXPECT_EQ(column(accumulated, "learning_rate"), column(steps, "learning_rate"));
  EXPECT_EQ(number(accumulated, 4, "tokens"), 4 * number(steps, 4, "tokens"));
  // A mean over tokens, not a sum over micro-batches.
  EXPECT_NEAR(number(accumulated, 0, "loss") / number(steps, 0, "loss"), 1, 0.5);
}

TEST_F(Training, ClippingIsLoggedBesideTheUnclippedNorm) {
  const RunFiles run = this->run(tiny(), {"clip_norm=0.1"});
  const CsvTable steps = run.steps();
  for (std::size_t row = 0; row < steps.rows(); ++row) {
    EXPECT_GT(number(steps, row, "grad_norm"), 0.1);
    EXPECT_DOUBLE_EQ(number(steps, row, "clip_factor"), 0.1 / number(steps, row, "grad_norm"));
  }
  EXPECT_EQ(run.json("summary.json")["clipped_steps"], 5);
  EXPECT_THAT(column(this->run(tiny(), {}, "without").steps(), "clip_factor"), Each(std::string("1")));
}

TEST_F(Training, SmallNumbersKeepTheirDigits) {
  const RunFiles run = this->run(tiny(), {"learning_rate=9.67e-5"});
  EXPECT_THAT(column(run.steps(), "learning_rate"), Each(AnyOf("9.67e-5", "9.67e-05")));
  EXPECT_EQ(number(run.steps(), 0, "learning_rate"), 9.67e-5);
}

TEST_F(Training, WeightDecayActsOnMatricesOnly) {
  // Nothing but decay moves a weight whose gradient is zero: with branches off, those of the blocks have none.
  const RunFiles run =
      this->run(tiny(), {"branch_scale=0", "weight_decay=0.1", "tensors=true", "steps=1", "dtype=float64"});
  const CsvTable tensors = run.tensors();
  std::size_t matrices = 0, others = 0;
  for (std::size_t row = 0; row < tensors.rows(); ++row) {
    const std::string name(tensors.text(row, 1));
    if (!name.starts_with("block.")) continue;
    const bool norm = name.find("norm") != std::string::npos;
    if (name.ends_with(".weight") && !norm) {
      EXPECT_NEAR(number(tensors, row, "update_ratio"), 1e-4, 1e-12) << name;  // learning rate · decay
      ++matrices;
    } else {
      EXPECT_EQ(number(tensors, row, "update_norm"), 0) << name;
      ++others;
    }
  }
  EXPECT_EQ(matrices, 12u);
  EXPECT_GT(others, 12u);
  EXPECT_EQ(run.json("config.json")["train"]["weight_decay"], 0.1);
}

TEST_F(Training, TextIsTakenByteByByte) {
  std::string text = "\xEF\xBB\xBF";
  for (int line = 0; line < 100; ++line) text += "ab\r\n";
  text += "\r";
  const RunFiles run = this->run(text_config(text), {});
  const auto summary = run.json("summary.json");
  EXPECT_EQ(summary["text"]["bytes"], 404);  // of the file
  EXPECT_EQ(summary["text"]["tokens"], 401);
  EXPECT_EQ(summary["text"]["distinct_tokens"], 4);
  EXPECT_NEAR(summary["unigram_entropy"].get<double>(), std::log(4), 1e-3);
  EXPECT_NEAR(summary["log_vocabulary"].get<double>(), std::log(256), 1e-12);
}

TEST_F(Training, OtherPlacesForTheTextAreTheCurrentFolder) {
  const std::string config = text_config(std::string(200, 'a'));
  create_folders(folder_ / "elsewhere");
  write("elsewhere/my.txt", std::string(300, 'b') + std::string(300, 'c'));
  const Outcome outcome = run_gradflow({"run", config, "--set", "data.files=my.txt", "--out", folder_ / "run"},
                                       {.folder = folder_ / "elsewhere"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(RunFiles{folder_ / "run"}.json("summary.json")["text"]["bytes"], 600);
}

TEST_F(Training, AnotherContentOfTheSameFileIsAnotherRun) {
  const std::string config = text_config(std::string(200, 'a'));
  run(config, {});
  write("text.txt", std::string(200, 'b'));
  const Outcome outcome = run_gradflow(command(config, {}));
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.error_lines(), ElementsAre(HasSubstr("holds a run of another configuration")));
}

TEST_F(Training, ASmallHeadStartsNearTheLogarithmOfTheVocabulary) {
  const auto summary = run(tiny(), {"initialization=normal", "vocabulary=64", "steps=1"}).json("summary.json");
  EXPECT_NEAR(summary["first_loss"].get<double>(), summary["log_vocabulary"].get<double>(), 0.01);
}

TEST_F(Training, EveryTaskAndNumberFormatRuns) {
  for (const std::string task : {"copy", "reverse", "sort", "majority", "modular", "random", "quadratic"}) {
    const RunFiles run = this->run(tiny(), {"task=" + task, "steps=2", "evaluate_every=1"}, task);
    EXPECT_EQ(run.steps().rows(), 2u) << task;
  }
  const double single = number(run(tiny(), {}, "single").steps(), 4, "loss");
  EXPECT_NEAR(number(run(tiny(), {"dtype=float64"}, "double").steps(), 4, "loss") / single, 1, 1e-4);
  EXPECT_NEAR(number(run(tiny(), {"dtype=bfloat16"}, "brain").steps(), 4, "loss") / single, 1, 0.02);
}

// ---- values that are not finite
// -----------------------------------------------------------------------------------------

TEST_F(Nonfinite, StopsTheRunWithItsRowsWritten) {
  const Outcome outcome = run_gradflow(command(tiny(), diverging()));
  EXPECT_EQ(outcome.code, 3);
  const RunFiles run{folder_ / "run"};
  const CsvTable steps = run.steps(), layers = run.layers();
  ASSERT_GE(steps.rows(), 2u);
  const std::size_t last = steps.rows() - 1;
  const std::int64_t step = steps.integer(last, 0);
  EXPECT_LT(step, 5);

  // The row says what was found; before the optimizer wrote, so that the weights are finite and nothing was updated.
  const auto text = [&](const char* name) { return steps.text(last, steps.column(name)); };
  EXPECT_GT(steps.integer(last, steps.column("nonfinite")), 0);
  EXPECT_THAT(text("grad_norm"), AnyOf("nan", "inf"));
  EXPECT_TRUE(std::isfinite(number(steps, last, "weight_norm")));
  EXPECT_EQ(text("update_norm"), "");
  for (const std::string name : {"steps.csv", "layers.csv", "spikes.csv", "timing.csv"})
    for (const std::string& line : lines_of(run.file(name)))
      for (const char* wrong : {"NaN", "-nan", "NAN", "Inf", "INF", "infinity", "null"})
        EXPECT_THAT(line, Not(HasSubstr(wrong))) << name;
  std::int64_t nonfinite = 0;
  for (std::int64_t layer = 0; layer <= 3; ++layer)
    for (const std::size_t row : rows_of(layers, step, layer))
      nonfinite += layers.integer(row, layers.column("nonfinite"));
  EXPECT_GT(nonfinite, 0);
  EXPECT_EQ(integers(layers, "step").back(), step);
  const CsvTable spikes = read_csv(run.file("spikes.csv"), spikes_columns());
  EXPECT_THAT(column(spikes, "kind"), ::testing::Contains("nonfinite"));

  const auto manifest = run.json("manifest.json");
  const auto summary = run.json("summary.json");
  EXPECT_EQ(manifest["status"], "diverged");
  EXPECT_EQ(summary["verdict"], "diverged");
  EXPECT_EQ(summary["nonfinite"]["step"], step);
  const std::string tensor = summary["nonfinite"]["tensor"];
  EXPECT_THAT(manifest["reason"].get<std::string>(),
              AllOf(HasSubstr("step " + std::to_string(step)), HasSubstr(tensor)));
  EXPECT_THAT(outcome.error_lines().back(), AllOf(StartsWith("gradflow: warning: "), HasSubstr(tensor),
                                                  HasSubstr("step " + std::to_string(step)), HasSubstr("layer ")));
  EXPECT_THAT(outcome.out, HasSubstr("diverged"));

  // Done: the same command finds it and says the same.
  const Outcome again = run_gradflow(command(tiny(), diverging()));
  EXPECT_EQ(again.code, 3);
  EXPECT_THAT(again.err, HasSubstr("already diverged"));
}

TEST_F(Nonfinite, SkippingKeepsTheWeightsAndGoesOn) {
  const RunFiles run = this->run(tiny(), diverging({"on_nonfinite=skip"}));
  const CsvTable steps = run.steps();
  ASSERT_EQ(steps.rows(), 5u);
  std::size_t skipped = 0;
  for (std::size_t row = 0; row < 5; ++row) {
    EXPECT_TRUE(std::isfinite(number(steps, row, "weight_norm")));
    if (steps.integer(row, steps.column("nonfinite")) == 0) continue;
    ++skipped;
    EXPECT_EQ(number(steps, row, "update_norm"), 0);
    EXPECT_EQ(number(steps, row, "weight_norm"), number(steps, row - 1, "weight_norm"));
  }
  EXPECT_GT(skipped, 0u);
  EXPECT_EQ(run.json("summary.json")["skipped_steps"], skipped);
  EXPECT_EQ(run.json("manifest.json")["status"], "finished");
}

TEST_F(Nonfinite, ContinuingRunsToTheEnd) {
  const RunFiles run = this->run(tiny(), diverging({"on_nonfinite=continue", "layers_every=1"}));
  const CsvTable steps = run.steps();
  ASSERT_EQ(steps.rows(), 5u);
  EXPECT_EQ(column(steps, "loss").back(), "nan");
  EXPECT_EQ(column(steps, "weight_norm").back(), "nan");
  EXPECT_EQ(run.json("manifest.json")["status"], "finished");
  EXPECT_TRUE(run.json("summary.json")["final_loss"].is_null());
}

TEST_F(Nonfinite, AnUpdateThatOverflowsIsNotWritten) {
  // The gradient is finite, the learning rate times it is beyond a float: found before the optimizer writes, too.
  const Words overflowing = {"norm=none", "placement=none", "embedding_std=30", "optimizer=sgd", "learning_rate=3e38"};
  const Outcome outcome = run_gradflow(command(tiny(), overflowing + Words{"steps=1"}));
  EXPECT_EQ(outcome.code, 3);
  EXPECT_TRUE(std::isfinite(number(RunFiles{folder_ / "run"}.steps(), 0, "weight_norm")));
}

// ---- size
// ---------------------------------------------------------------------------------------------------------------

TEST_F(Training, AThousandBlocksNeedNoDeepStack) {
  const Words overrides = {"depth=1000", "width=16", "steps=2"};
  const Outcome outcome = run_gradflow(command("configs/quickstart.json", overrides), {.shell = "ulimit -s 1024"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(integers(RunFiles{folder_ / "run"}.layers(), "layer").back(), 1001);
}

TEST_F(Training, ARunTakesTheMemoryThatDescribeSays) {
  const std::string config = write("wide.json", R"({"model": {"depth": 12, "width": 64}, "data": {"context": 64},)"
                                                R"( "train": {"batch": 64, "steps": 2}})");
  for (const char* backend : {"aten", "fused"}) {
    const std::string choice = std::string("compute.backend=") + backend;
    const Outcome described = run_gradflow({"describe", config, "--json", "--set", choice});
    ASSERT_EQ(described.code, 0) << described.err;
    const double expected = nlohmann::json::parse(described.out).at("memory_bytes").at("total");
    std::filesystem::remove_all(folder_ / "run");
    const Outcome outcome = run_gradflow(command(config, {choice}));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_NEAR(expected / static_cast<double>(outcome.peak_memory), 1, 0.15) << backend;
  }
}

TEST_F(Training, AThousandBlocksStayBelowTheirMemory) {
  const std::string config =
      write("deep.json", R"({"model": {"depth": 1000, "width": 64}, "data": {"context": 64},)"
                         R"( "train": {"batch": 8, "steps": 1}, "compute": {"recompute": true}})");
  const Outcome outcome = run_gradflow(command(config, {}));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_LT(outcome.peak_memory, 1'200'000'000);
}

}  // namespace
}  // namespace gradflow
