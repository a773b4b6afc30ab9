#include "command/description_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "config/compatibility.h"
#include "config/load.h"
#include "config/resolved.h"
#include "model/memory_estimate.h"
#include "output/text_table.h"

namespace gradflow {
namespace {

using ::testing::HasSubstr;

Config deepnorm() {
  Config config;
  config.name = "study";
  config.model.placement = Placement::deepnorm;
  return resolved(config);
}

Subject subject_of(const Config& config) {
  return {.config = config,
          .layout = make_layout(config),
          .facts = {.vocabulary = 64, .unigram_entropy = 3.95, .entropy_rate = 1.213},
          .files_hash = "",
          .folder = "results/study/id"};
}

TEST(DescriptionText, SaysWhichPlacementARunUses) {
  const Config config = deepnorm();
  const std::string text = description_text(subject_of(config));
  EXPECT_THAT(text, HasSubstr("study: transformer, 12 blocks, width 64, 4 heads, ffn 256\nplacement deepnorm, residual "
                              "add, 612,096 parameters\n"));
  EXPECT_THAT(text, HasSubstr("blocks 1-12  attention  x ← LayerNorm(2.213·x + Attention(x))\n"));
  EXPECT_THAT(text, HasSubstr("2.213364  (2N)^¼, on the skip\n"));
  EXPECT_THAT(text, HasSubstr("final norm      no\n"));
  EXPECT_THAT(text, HasSubstr("model.placement  \"deepnorm\"  default \"pre\"\n"));
  EXPECT_THAT(text, HasSubstr("loss of the best constant answer  3.95 nats\n"));
  EXPECT_THAT(text, HasSubstr("run folder results/study/id\n"));
}

TEST(DescriptionText, NamesAFinalNormThatWasConfigured) {
  Config config = deepnorm();
  config.model.placement = Placement::pre;
  EXPECT_THAT(description_text(subject_of(config)), HasSubstr("final norm      yes\n"));
  config.model.final_norm = false;
  const std::string text = description_text(subject_of(config));
  EXPECT_THAT(text, HasSubstr("final norm      no, configured\n"));
  EXPECT_THAT(text, HasSubstr("logits     head(x)\n"));
}

TEST(DescriptionText, SaysWhatTakesTheMemory) {
  Config config = deepnorm();
  const auto memory = [&] {
    const std::string text = description_text(subject_of(config));
    return text.substr(text.find("\nMemory at the peak"));
  };
  EXPECT_THAT(memory(), HasSubstr("  values, gradients, two moments  "));
  EXPECT_THAT(memory(), HasSubstr("  activations  "));
  config.train.optimizer = OptimizerKind::sgd;
  EXPECT_THAT(memory(), HasSubstr("  values, gradients  "));
  config.train.momentum = 0.9;
  EXPECT_THAT(memory(), HasSubstr("  values, gradients, momentum  "));
  config.compute.recompute = true;
  EXPECT_THAT(memory(), HasSubstr("  activations, a layer recomputed at a time  "));
  config.model.depth = 400;
  EXPECT_THAT(memory(), HasSubstr("  activations, " + std::to_string(recompute_group(config, make_layout(config))) +
                                  " layers recomputed at a time  "));
}

TEST(DescriptionText, FitsOnATerminal) {
  for (const Placement placement : allowed_placements(StackKind::transformer))
    for (const Residual residual : allowed_residuals(StackKind::transformer, placement)) {
      Config config = deepnorm();
      config.model.placement = placement;
      config.model.residual = residual;
      config.model.residual_gate.reset();
      config.model.norm = Norm::batchnorm;
      config.model.initialization = Initialization::ds_init;
      config.model.depth = 1000;
      config.model.branch_scale_exponent = 0.5;
      config.model.branch_warmup = 10000;
      config.model.dropout = 0.1;
      config = resolved(config);
      std::istringstream lines(description_text(subject_of(config)));
      for (std::string line; std::getline(lines, line);)
        EXPECT_LE(display_width(line), 100u) << name_of(placement) << " " << name_of(residual) << ": " << line;
    }
}

TEST(DescriptionText, ShowsEveryKeyWithItsValue) {
  const Config config = deepnorm();
  EXPECT_THAT(description_text(subject_of(config)), HasSubstr(to_json(config).dump(2)));
}

TEST(DescriptionJson, HoldsTheSameNumbers) {
  const Config config = deepnorm();
  const auto json = description_json(subject_of(config));
  EXPECT_EQ(json.at("derived").at("formulas").at("blocks")[0].at("ffn"), "LayerNorm(2.213·x + FeedForward(x))");
  EXPECT_EQ(json.at("derived").at("final_norm"), false);
  EXPECT_EQ(json.at("config"), to_json(config));
  EXPECT_EQ(json.at("changed"), nlohmann::ordered_json({{"name", "study"}, {"model.placement", "deepnorm"}}));
  EXPECT_EQ(json.at("task").at("unigram_entropy"), 3.95);
  EXPECT_TRUE(json.at("task").at("text_bytes").is_null());
  std::int64_t elements = 0;
  for (const auto& group : json.at("parameter_groups")) elements += group.at("elements").get<std::int64_t>();
  EXPECT_EQ(elements, json.at("derived").at("parameters"));
  const auto& decay = json.at("decay_groups");
  EXPECT_EQ(decay.at("decayed").at("elements").get<std::int64_t>() +
                decay.at("not_decayed").at("elements").get<std::int64_t>(),
            elements);
  EXPECT_GT(json.at("memory_bytes").at("total"), json.at("memory_bytes").at("activations"));
}

TEST(DescriptionJson, ConfigurationReadsBack) {
  Config config = deepnorm();
  config.model.depth = 7;
  EXPECT_EQ(parse_config(description_json(subject_of(config)).at("config").dump(), ""), resolved(config));
}

}  // namespace
}  // namespace gradflow
