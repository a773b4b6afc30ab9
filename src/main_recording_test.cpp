// The whole program: what a run writes, and that the numbers in it keep the project's promises.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "testing/run_of_program.h"

namespace gradflow::testing {
namespace {

using namespace ::testing;

class Quickstart : public ProgramTest {};
class Recording : public ProgramTest {};

constexpr std::string_view measured_columns[] = {"norm_input_rms",   "stream_mean", "stream_variance", "stream_rms",
                                                 "stream_grad_norm", "branch_rms",  "branch_ratio"};
constexpr std::string_view detail_columns[] = {
    "branch_cosine", "branch_variance_gain", "token_norm_cv",   "branch_norm_cv",    "mean_share",
    "dual_rms",      "stream_grad_cosine",   "dual_grad_norm",  "attention_entropy", "attention_logit_max",
    "zero_fraction", "angular_distance",     "skip_grad_share", "token_diversity_db"};

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
    for (const std::string& line : steps) EXPECT_THAT(all_steps, Contains(line));
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

}  // namespace
}  // namespace gradflow::testing
