#include "claims/claim.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "claims/outcome.h"
#include "config/fields.h"
#include "config/json_reader.h"
#include "core/error.h"
#include "core/files.h"
#include "testing/made_run.h"
#include "testing/temporary_folder.h"

namespace gradflow {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Lines = std::vector<std::string>;

const std::string folder = "configs/claims";

std::string replaced(std::string text, const std::string& part, const std::string& by) {
  const std::size_t at = text.find(part);
  EXPECT_NE(at, std::string::npos) << part;
  return text.replace(at, part.size(), by);
}

class ClaimFiles : public ::testing::Test {
 protected:
  /// A claim that post-LN ends higher than pre-LN, on lines of its own.
  static std::string good() {
    return R"({
"statement": "Post-LN ends higher.", "source": "nobody", "topic": "tests", "expected": "reproduced", "seconds": 1,
"experiment": {"base": {"model": {"depth": 2, "width": 8, "heads": 2}, "train": {"steps": 20}},
"axes": {"model.placement": ["pre", "post"], "seed": [1, 2, 3]}},
"statistic": {"name": "difference", "of": [{"name": "final_loss", "where": {"model.placement": "post"}},
{"name": "final_loss", "where": {"model.placement": "pre"}}]},
"criterion": {"above": 0.5, "refuted": {"below": 0}},
"quick": {"axes": {"seed": [1, 2, 3], "train.steps": [10]}}
})";
  }
  Claim claim(const std::string& text, ClaimLength length = ClaimLength::full) {
    write_file_atomically(folder_ / "c.json", text);
    return load_claim(folder_ / "c.json", length);
  }
  Lines faults(const std::string& text) {
    try {
      claim(text);
    } catch (const Error& error) {
      Lines lines;
      for (const std::string& line : error.lines()) lines.push_back(replaced(line, folder_.path() + "/", ""));
      return lines;
    }
    return {};
  }

  TemporaryFolder folder_;
};

// ---- the format
// ------------------------------------------------------------------------------------------------------

TEST_F(ClaimFiles, AreRead) {
  const Claim read = claim(good());
  EXPECT_EQ(read.id, "c");
  EXPECT_EQ(read.statement, "Post-LN ends higher.");
  EXPECT_EQ(read.cells.size(), 6u);
  EXPECT_THAT(read.seeds, ElementsAre(1, 2, 3));
  EXPECT_EQ(read.criterion.words(), "reproduced above 0.5, refuted below 0");
  EXPECT_EQ(read.cells[0].train.steps, 20);
}

TEST_F(ClaimFiles, TheQuickVariantReplacesAxesAndAddsSome) {
  const Claim quick = claim(replaced(good(), "[1, 2, 3], \"train", "[4, 5], \"train"), ClaimLength::quick);
  EXPECT_EQ(quick.cells.size(), 4u);
  EXPECT_THAT(quick.seeds, ElementsAre(4, 5));
  EXPECT_EQ(quick.cells[0].train.steps, 10);
  EXPECT_EQ(quick.criterion.words(), claim(good()).criterion.words());
}

TEST_F(ClaimFiles, AnUnknownStatisticIsAnErrorWithTheNearestName) {
  EXPECT_THAT(faults(replaced(good(), "\"final_loss\"", "\"final_los\"")),
              ElementsAre("c.json:5: statistic.of.1.name: \"final_los\" is no statistic; did you mean final_loss?"));
}

TEST_F(ClaimFiles, EveryFaultComesInOneReport) {
  const std::string text = replaced(replaced(replaced(good(), "\"source\"", "\"sauce\""), "\"above\"", "\"abov\""),
                                    "\"expected\": \"reproduced\"", "\"expected\": \"reproducd\"");
  EXPECT_THAT(faults(text), AllOf(Contains(HasSubstr("c.json:1: source: missing")),
                                  Contains(HasSubstr("c.json:2: sauce: unknown key; did you mean source?")),
                                  Contains(HasSubstr("criterion.abov: unknown key; did you mean above?")),
                                  Contains(HasSubstr("\"reproducd\" is no verdict; did you mean reproduced?"))));
}

TEST_F(ClaimFiles, ImpossibleExperimentsAreRefusedBeforeAnyRun) {
  EXPECT_THAT(faults(replaced(good(), "\"heads\": 2", "\"heads\": 3")),
              Contains(AllOf(HasSubstr("model.heads"), HasSubstr("does not divide"))));
  EXPECT_THAT(faults(replaced(good(), "\"depth\"", "\"dept\"")), Contains(HasSubstr("did you mean model.depth?")));
  EXPECT_THAT(faults(replaced(good(), "\"train\": {\"steps\": 20}", "\"train\": {\"steps\": \"20\"}")),
              Contains(HasSubstr("train.steps")));
  EXPECT_THAT(faults(replaced(good(), "{\"model.placement\": \"post\"}", "{\"model.placement\": \"peri\"}")),
              Contains(HasSubstr("\"peri\" is no value of the experiment")));
}

TEST_F(ClaimFiles, ACriterionSaysWhatWouldRefuteIt) {
  EXPECT_THAT(faults(replaced(good(), ", \"refuted\": {\"below\": 0}", "")),
              Contains(HasSubstr("criterion.refuted: missing")));
  EXPECT_THAT(faults(replaced(good(), "{\"below\": 0}", "{\"below\": 0.6}")),
              Contains(AllOf(HasSubstr("criterion.refuted"), HasSubstr("in common"))));
  EXPECT_THAT(faults(replaced(good(), "\"above\": 0.5", "\"above\": 0.5, \"below\": 2")),
              Contains(HasSubstr("is a second bound; keep one")));
}

TEST_F(ClaimFiles, RunsOrACheckAndNotBoth) {
  EXPECT_THAT(faults(replaced(good(), "\"experiment\"",
                              "\"check\": {\"name\": \"power\", \"base\": 0.9, \"exponent\": 50}, \"experiment\"")),
              Contains(HasSubstr("either \"experiment\" (runs) or \"check\"")));
}

std::string check_file(const std::string& check, const std::string& more = "") {
  return R"({"statement": "s", "source": "s", "topic": "t", "expected": "reproduced", "seconds": 0, "check": )" +
         check + more + R"(, "criterion": {"above": 0.5, "refuted": {"below": 0}}})";
}

TEST_F(ClaimFiles, ChecksAreValidatedLikeStatistics) {
  EXPECT_THAT(faults(check_file(R"({"name": "powr"})")),
              ElementsAre("c.json:1: check.name: \"powr\" is no check; did you mean power?"));
  EXPECT_THAT(faults(check_file(R"({"name": "power", "base": 0.9})")),
              ElementsAre(HasSubstr("check.exponent: missing")));
  EXPECT_THAT(faults(check_file(R"({"name": "power", "base": 0.9, "exponent": 1.5})")),
              ElementsAre(HasSubstr("check.exponent: got")));
  EXPECT_THAT(faults(check_file(R"({"name": "norm_gradient", "norm": "layernrm"})", R"(, "seeds": [1, 2, 3])")),
              ElementsAre(HasSubstr("did you mean layernorm?")));
  EXPECT_THAT(faults(check_file(R"({"name": "norm_gradient", "norm": "layernorm"})")),
              ElementsAre(HasSubstr("seeds: missing")));
  EXPECT_THAT(faults(check_file(R"({"name": "power", "base": 0.9, "exponent": 50})", R"(, "seeds": [1])")),
              ElementsAre(HasSubstr("draws nothing; leave it out")));
  EXPECT_THAT(faults(check_file(R"({"name": "power", "base": 0.9, "exponent": 50, "relative_to": {"exponent": -1}})")),
              ElementsAre(HasSubstr("check.relative_to.exponent")));
  const Claim relative =
      claim(check_file(R"({"name": "power", "base": 0.9, "exponent": 50, "relative_to": {"exponent": 40}})"));
  EXPECT_EQ(relative.check->relative_to.at(0).count("exponent"), 40);
  EXPECT_EQ(relative.check->relative_to.at(0).number("base"), 0.9);
}

TEST_F(ClaimFiles, AreFoundByNameOrPath) {
  write_file_atomically(folder_ / "one.json", good());
  write_file_atomically(folder_ / "two.json", good());
  const std::vector<std::string> ids{"two", "elsewhere/x.json"};
  EXPECT_THAT(claim_files_named(ids, folder_.path()), ElementsAre(folder_ / "two.json", "elsewhere/x.json"));
  const std::vector<std::string> wrong{"tow"};
  try {
    claim_files_named(wrong, folder_.path());
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("did you mean two?"));
  }
  EXPECT_THROW(claim_files(folder_ / "nothing"), Error);
}

// ---- verdicts of runs
// ------------------------------------------------------------------------------------------------

/// Runs of a claim that are made without training: post-LN ends at `post`, pre-LN at 1.7.
std::vector<ClaimRun> made_runs(const Claim& claim, double post, const std::string& pool) {
  std::vector<ClaimRun> runs;
  for (const Config& config : claim.cells) {
    const double seed = static_cast<double>(config.seed);
    runs.push_back({pool + "/" + std::to_string(runs.size()), ""});
    testing::make_run(
        runs.back().folder,
        {.config = config, .loss = config.model.placement == Placement::post ? post + 0.01 * seed : 1.7 + 0.02 * seed});
  }
  return runs;
}

TEST_F(ClaimFiles, ATrueStatementIsReproducedAndItsReverseRefuted) {
  const Claim is_true = claim(good());
  const ClaimOutcome outcome = judge_runs(is_true, made_runs(is_true, 3.9, folder_ / "a"));
  EXPECT_EQ(outcome.judgement.verdict, ClaimVerdict::reproduced);
  EXPECT_NEAR(outcome.judgement.value.value(), 2.2 - 0.02, 1e-12);
  EXPECT_DOUBLE_EQ(outcome.seconds, 6 * 20 * 0.5) << "of the six runs";

  EXPECT_EQ(judge_runs(is_true, made_runs(is_true, 0.9, folder_ / "b")).judgement.verdict, ClaimVerdict::refuted);
  EXPECT_EQ(judge_runs(is_true, made_runs(is_true, 2.0, folder_ / "d")).judgement.verdict,
            ClaimVerdict::not_reproduced);
}

TEST_F(ClaimFiles, EveryNumberOfAVerdictIsKept) {
  const Claim read = claim(good());
  const ClaimOutcome outcome = judge_runs(read, made_runs(read, 3.9, folder_ / "a"));
  ASSERT_EQ(outcome.numbers.size(), 9u) << "two leaves and a result for each of three seeds";
  EXPECT_EQ(outcome.numbers[0].statistic, "final_loss (statistic.of.1)");
  EXPECT_EQ(outcome.numbers[0].run, folder_ / "a/3");
  EXPECT_EQ(outcome.numbers[2].statistic, "result");
  write_outcomes({&outcome, 1}, folder_ / "out", "gradflow claims run c");
  EXPECT_THAT(read_file(folder_ / "out/numbers/c.csv"), HasSubstr("final_loss (statistic.of.2)"));
  EXPECT_THAT(read_file(folder_ / "out/claims.csv"), HasSubstr("c,tests,reproduced,reproduced,2.17"));
  EXPECT_THAT(read_file(folder_ / "out/claims.md"),
              AllOf(HasSubstr("[reproduced](numbers/c.csv)"), HasSubstr("`gradflow claims run c`")));
}

TEST_F(ClaimFiles, PositionsInAConflictStandSideBySide) {
  const Claim one =
      claim(replaced(good(), "\"topic\"", "\"conflict\": \"Which is better\", \"note\": \"final loss\", \"topic\""));
  const ClaimOutcome outcome = judge_runs(one, made_runs(one, 3.9, folder_ / "a"));
  const std::vector<ClaimOutcome> both{outcome, outcome};
  const std::string text = outcomes_markdown(both, "gradflow claims run");
  const std::size_t at = text.find("### Which is better");
  ASSERT_NE(at, std::string::npos);
  EXPECT_EQ(text.find("### Which is better", at + 1), std::string::npos) << "one table for both";
  EXPECT_THAT(text.substr(at), HasSubstr("| Post-LN ends higher. (`c`) | nobody | final loss | reproduced | 2.18"));
}

TEST_F(ClaimFiles, TooFewSeedsLeaveItUndecided) {
  const Claim read = claim(replaced(good(), "\"seed\": [1, 2, 3]}}", "\"seed\": [1, 2]}}"));
  const ClaimOutcome outcome = judge_runs(read, made_runs(read, 3.9, folder_ / "a"));
  EXPECT_EQ(outcome.judgement.verdict, ClaimVerdict::undecided);
  EXPECT_THAT(outcome.judgement.reason, HasSubstr("2 seeds; an interval needs 3"));
}

TEST_F(ClaimFiles, AFailedRunLeavesItUndecidedAndSaysWhy) {
  const Claim read = claim(good());
  std::vector<ClaimRun> runs = made_runs(read, 3.9, folder_ / "a");
  runs[2].failure = "no space left";
  const ClaimOutcome outcome = judge_runs(read, runs);
  EXPECT_EQ(outcome.judgement.verdict, ClaimVerdict::undecided);
  EXPECT_THAT(outcome.failure, HasSubstr("no space left"));
  EXPECT_THAT(outcome.judgement.reason, HasSubstr("no space left"));
}

TEST_F(ClaimFiles, ASeedWithoutANumberLeavesItUndecided) {
  const Claim read = claim(good());
  std::vector<ClaimRun> runs = made_runs(read, 3.9, folder_ / "a");
  testing::make_run(runs[0].folder, {.config = read.cells[0], .status = RunStatus::diverged});
  const ClaimOutcome outcome = judge_runs(read, runs);
  EXPECT_EQ(outcome.judgement.verdict, ClaimVerdict::undecided);
  EXPECT_THAT(outcome.judgement.reason, AllOf(HasSubstr("seed 1"), HasSubstr("non-finite")));
  EXPECT_EQ(outcome.failure, "") << "a run that stopped is a result, not a failure";
}

TEST_F(ClaimFiles, TheJsonHasTheNamesOfTheContract) {
  const Claim read = claim(good());
  const ClaimOutcome outcome = judge_runs(read, made_runs(read, 3.9, folder_ / "a"));
  const Json json = outcomes_json({&outcome, 1});
  for (const char* key :
       {"id", "statement", "verdict", "value", "low", "high", "seeds", "criterion", "seconds", "runs"})
    EXPECT_TRUE(json[0].contains(key)) << key;
  EXPECT_EQ(json[0]["runs"].size(), 6u);
}

// ---- the catalogue
// ---------------------------------------------------------------------------------------------------

TEST(Catalogue, EveryFileIsAClaimWhoseRunsCanBeBuilt) {
  const std::vector<std::string> files = claim_files(folder);
  EXPECT_GE(files.size(), 45u);
  for (const std::string& file : files)
    for (const ClaimLength length : {ClaimLength::full, ClaimLength::quick}) {
      try {
        const Claim read = load_claim(file, length);
        EXPECT_TRUE(read.averaging == Averaging::exact || read.seeds.size() >= 3) << file;
        EXPECT_TRUE(length == ClaimLength::quick || read.averaging == Averaging::exact || read.check ||
                    read.seeds.size() >= 5)
            << file << ": five seeds at full length";
      } catch (const Error& error) {
        ADD_FAILURE() << error.what();
      }
    }
}

/// Every key of a claim's runs is written in its setup or its axes, so that no default of the program can change it.
TEST(Catalogue, SetupsWriteEveryKeyThatARunDependsOn) {
  // What a Transformer does not read, what follows from another key that is written, what only looks.
  const std::set<std::string_view> transformer{"name",
                                               "seed",
                                               "model.residual_gate",
                                               "model.branch_scale",
                                               "model.branch_scale_exponent",
                                               "model.branch_warmup",
                                               "model.deepnorm_alpha",
                                               "model.deepnorm_beta",
                                               "model.mix_post_fraction",
                                               "model.keel_alpha",
                                               "model.init_std",
                                               "model.embedding_norm",
                                               "model.block_layers",
                                               "data.files",
                                               "data.tokenizer",
                                               "data.successors",
                                               "data.inputs",
                                               "data.side",
                                               "data.classes",
                                               "data.validation_fraction",
                                               "train.final_fraction",
                                               "train.momentum",
                                               "train.evaluate_batches",
                                               "compute.backend",
                                               "compute.recompute",
                                               "compute.flush_denormals"};
  const std::set<std::string_view> mlp{"model.heads",          "model.ffn_width",      "model.query_key_init_scale",
                                       "model.embedding_std",  "model.positions",      "model.causal",
                                       "model.tie_embeddings", "model.qk_norm",        "data.vocabulary",
                                       "data.context",         "data.padding_fraction"};
  for (const auto& entry : std::filesystem::directory_iterator(folder + "/setups")) {
    const std::string file = entry.path().string();
    Faults faults;
    const JsonValue root = read_json(read_file(file), file, faults);
    const bool is_mlp = entry.path().stem() == "mlp";
    for (const auto& field : fields()) {
      const std::string_view key = field->key();
      if (key.starts_with("record.") || key.starts_with("checkpoint.") || transformer.contains(key) ||
          (is_mlp && mlp.contains(key)))
        continue;
      const JsonValue* at = &root;
      for (std::size_t from = 0; at != nullptr && from < key.size();) {
        const std::size_t dot = std::min(key.find('.', from), key.size());
        const auto found = std::find(at->names.begin(), at->names.end(), key.substr(from, dot - from));
        at = found == at->names.end() ? nullptr : &at->elements[static_cast<std::size_t>(found - at->names.begin())];
        from = dot + 1;
      }
      // The inputs of an MLP's task are written where a Transformer has none.
      EXPECT_NE(at, nullptr) << file << " leaves " << key << " to the default";
    }
  }
}

}  // namespace
}  // namespace gradflow
