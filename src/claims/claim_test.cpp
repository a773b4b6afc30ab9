#include "claims/claim.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>

#include "claims/outcome.h"
#include "config/fields.h"
#include "config/json_reader.h"
#include "core/error.h"
#include "core/files.h"
#include "testing/claim_files.h"
#include "testing/made_run.h"

namespace gradflow {
namespace {

using ::testing::AllOf;
using testing::ClaimFiles;
using ::testing::Contains;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::made_runs;
using testing::replaced;
using Lines = std::vector<std::string>;

const std::string folder = "configs/claims";

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

TEST_F(ClaimFiles, TheChecksumIsThatOfTheFileAndItsBase) {
  write_file_atomically(folder_ / "base.json", R"({"model": {"depth": 2, "width": 8, "heads": 2}})");
  const std::string text =
      replaced(good(), R"({"model": {"depth": 2, "width": 8, "heads": 2}, "train": {"steps": 20}})", "\"base.json\"");
  const std::string before = claim(text).checksum;
  EXPECT_EQ(before.size(), 16u);
  EXPECT_EQ(claim(text).checksum, before);
  EXPECT_NE(claim(replaced(text, "\"above\": 0.5", "\"above\": 0.6")).checksum, before);
  write_file_atomically(folder_ / "base.json", R"({"model": {"depth": 3, "width": 8, "heads": 2}})");
  EXPECT_NE(claim(text).checksum, before);
}

// ---- conflicts
// -------------------------------------------------------------------------------------------------------

TEST_F(ClaimFiles, AConflictSaysWhatItIsAboutWhatIsMeantAndWhoElse) {
  const auto with = [&](const std::string& conflict) {
    return faults(replaced(good(), "\"topic\"", "\"conflict\": " + conflict + ", \"topic\""));
  };
  EXPECT_THAT(with(R"("Which is better")"), Contains(HasSubstr("conflict: must be an object")));
  EXPECT_THAT(with(R"({"about": "x", "quantity": "y"})"), ElementsAre(HasSubstr("conflict.with: missing")));
  EXPECT_THAT(with(R"({"about": "x", "with": ["d"]})"), ElementsAre(HasSubstr("conflict.quantity: missing")));
  EXPECT_THAT(with(R"({"about": "x", "quantty": "y", "with": ["d"]})"),
              Contains(HasSubstr("conflict.quantty: unknown key; did you mean quantity?")));
  EXPECT_THAT(with(R"({"about": "x", "quantity": "y", "with": ["c"]})"),
              ElementsAre(HasSubstr("names the claim itself")));
}

TEST_F(ClaimFiles, PositionsOfAConflictNameOneAnother) {
  const auto write = [&](const std::string& id, const std::string& about, const std::string& with) {
    write_file_atomically(folder_ / (id + ".json"),
                          replaced(good(), "\"topic\"",
                                   R"("conflict": {"about": ")" + about + R"(", "quantity": "loss", "with": [")" +
                                       with + R"("]}, "topic")"));
  };
  const auto fault = [&]() -> std::string {
    try {
      const std::vector<std::string> only_one{folder_ / "one.json"};
      load_claims(only_one, ClaimLength::full);
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  };
  write("one", "better", "two");
  write("two", "better", "one");
  EXPECT_EQ(fault(), "");
  write("two", "worse", "one");
  EXPECT_THAT(fault(), HasSubstr("one.json:2: conflict.with: two is about \"worse\""));
  write("three", "better", "two");
  write("two", "better", "three");
  EXPECT_THAT(fault(), HasSubstr("two does not name one in turn"));
  write("one", "better", "tow");
  EXPECT_THAT(fault(), HasSubstr("\"tow\"; did you mean two?"));
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
  EXPECT_EQ(outcome.numbers[0].source.file, "summary.json");
  EXPECT_EQ(outcome.numbers[0].source.column, "final_loss");
  EXPECT_THAT(outcome.results(), ElementsAre(DoubleNear(2.19, 1e-9), DoubleNear(2.18, 1e-9), DoubleNear(2.17, 1e-9)));
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

TEST(Catalogue, ConflictsAreWhole) {
  const std::vector<Claim> claims = load_claims(claim_files(folder), ClaimLength::full);
  std::map<std::string, std::size_t> positions;
  for (const Claim& claim : claims)
    if (!claim.conflict.about.empty()) ++positions[claim.conflict.about];
  EXPECT_EQ(positions.size(), 7u) << "one for each conflict of the literature";
  for (const Claim& claim : claims) {
    if (claim.conflict.about.empty()) continue;
    EXPECT_EQ(claim.conflict.with.size() + 1, positions[claim.conflict.about]) << claim.id << " leaves a position out";
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
