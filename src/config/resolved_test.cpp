#include "config/resolved.h"

#include <gtest/gtest.h>

#include "config/fields.h"
#include "config/load.h"

namespace gradflow {
namespace {

TEST(Resolved, FillsInOnlyWhatIsAbsent) {
  Config config;
  config.model.width = 32;
  config.model.residual = Residual::layerscale;
  config.model.initialization = Initialization::gpt2;
  Config full = resolved(config);
  EXPECT_EQ(full.model.ffn_width, 128);
  EXPECT_EQ(full.model.residual_gate, 0.1);
  EXPECT_EQ(full.model.embedding_std, 0.02);
  EXPECT_EQ(full.data.vocabulary, 64);
  EXPECT_EQ(full.model.final_norm, std::nullopt);
  config.model.ffn_width = 7;
  config.data.vocabulary = 9;
  full = resolved(config);
  EXPECT_EQ(full.model.ffn_width, 7);
  EXPECT_EQ(full.data.vocabulary, 9);
}

TEST(ToJson, WritesEveryKeyInItsGroup) {
  const Json json = to_json(Config{});
  std::size_t leaves = 0;
  for (const auto& field : fields()) {
    const Json* value = &json;
    std::string_view key = field->key();
    for (std::size_t dot = key.find('.'); dot != std::string_view::npos; dot = key.find('.')) {
      value = &value->at(std::string(key.substr(0, dot)));
      key.remove_prefix(dot + 1);
    }
    EXPECT_TRUE(value->contains(std::string(key))) << field->key();
    ++leaves;
  }
  EXPECT_EQ(leaves, json.flatten().size() - 1 /* betas has two */) << "nothing else stands there";
  EXPECT_EQ(json["model"]["final_norm"], "auto");
  EXPECT_EQ(json["train"]["clip_norm"], nullptr);
  EXPECT_EQ(json["model"]["ffn_width"], 256);
  EXPECT_EQ(json["record"]["quantities"], "standard");
}

TEST(ToJson, ReadsBackToAnEqualConfiguration) {
  Config config;
  config.name = "grün";
  config.seed = 9223372036854775807;
  config.model.placement = Placement::mix_ln;
  config.model.residual = Residual::scaled;
  config.model.norm_epsilon = 5e-324;
  config.model.mix_post_fraction = 1.0 / 3;
  config.model.branch_scale = -0.0;
  config.model.residual_gate = 1e22;
  config.model.deepnorm_alpha = 0.1 + 0.2;
  config.model.final_norm = false;
  config.train.learning_rate = 1.7976931348623157e308;
  config.train.betas = {0.1, 0.9999999999999999};
  config.train.clip_norm = 1;
  config.train.steps = 9007199254740993;
  config.record.quantities = {"none", "grad_norm"};
  const Config read = parse_config(to_json(config).dump(2), "b.json");
  EXPECT_EQ(read, resolved(config));
  EXPECT_TRUE(std::signbit(read.model.branch_scale));
  EXPECT_EQ(to_json(read), to_json(config));
}

TEST(ToJson, OverridesOfAResolvedFileStillFollow) {
  Config unnamed;
  unnamed.name = "a";
  const std::string file = to_json(unnamed).dump();
  const Config config =
      parse_config(file, "b.json", std::vector<std::string>{"name=x", "residual=rezero", "placement=post"});
  EXPECT_EQ(config.model.residual_gate, 0);
  EXPECT_EQ(config.model.final_norm, std::nullopt);
}

TEST(ToJson, PrintsIntegersExactlyAndNumbersShort) {
  Config config;
  config.seed = 9007199254740993;
  config.train.learning_rate = 0.1;
  config.train.weight_decay = 2;
  EXPECT_EQ(to_json(config)["seed"].dump(), "9007199254740993");
  EXPECT_EQ(to_json(config)["train"]["learning_rate"].dump(), "0.1");
  EXPECT_EQ(to_json(config)["train"]["weight_decay"].dump(), "2");
}

}  // namespace
}  // namespace gradflow
