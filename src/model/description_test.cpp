#include "model/description.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "config/resolved.h"
#include "core/error.h"
#include "testing/temporary_folder.h"

namespace gradflow {
namespace {

Config config_with(Placement placement, Initialization initialization = Initialization::xavier_normal,
                   std::int64_t depth = 24) {
  Config config;
  config.model.placement = placement;
  config.model.initialization = initialization;
  config.model.depth = depth;
  return resolved(config);
}

ParameterGroup group_named(const Config& config, const std::string& name) {
  for (const ParameterGroup& group : parameter_groups(make_layout(config)))
    if (group.name == name) return group;
  throw std::logic_error("no group " + name);
}

double std_of(const Config& config, const std::string& name) {
  const ParameterGroup group = group_named(config, name);
  EXPECT_EQ(group.least_std, group.greatest_std) << name;
  return group.least_std;
}

TEST(Description, ParametersOfOneBlock) {
  std::int64_t block = 0;
  for (const SegmentSpec& segment : make_layout(config_with(Placement::pre)).segments)
    if (segment.layer == 5)
      for (const ParameterSpec& parameter : segment.parameters) block += parameter.size();
  EXPECT_EQ(block, 49984);
}

TEST(Description, StdOfXavierAndOfDeepNorm) {
  const Config deepnorm = config_with(Placement::deepnorm);
  for (const char* name : {"attention.q.weight", "attention.k.weight"})
    EXPECT_NEAR(std_of(deepnorm, name), 0.125, 5e-7);
  for (const char* name : {"attention.v.weight", "attention.out.weight"})
    EXPECT_NEAR(std_of(deepnorm, name), 0.033580, 5e-7);
  for (const char* name : {"ffn.in.weight", "ffn.out.weight"}) EXPECT_NEAR(std_of(deepnorm, name), 0.021238, 5e-7);
  EXPECT_NEAR(std_of(config_with(Placement::post), "attention.v.weight"), 0.125, 5e-7);
}

TEST(Description, GainOfThePlacementMultipliesAnyScheme) {
  const Config config = config_with(Placement::deepnorm, Initialization::normal);
  EXPECT_EQ(std_of(config, "attention.q.weight"), 0.02);
  EXPECT_NEAR(std_of(config, "ffn.out.weight"), 0.02 * std::pow(8.0 * 24, -0.25), 1e-15);
}

TEST(Description, StdOfGpt2) {
  const Config config = config_with(Placement::pre, Initialization::gpt2);
  for (const char* name : {"attention.out.weight", "ffn.out.weight"}) EXPECT_NEAR(std_of(config, name), 0.002887, 5e-7);
  for (const char* name : {"attention.v.weight", "ffn.in.weight", "embedding.weight", "head.weight"})
    EXPECT_EQ(std_of(config, name), 0.02);
}

TEST(Description, StdThatDependsOnTheBlockIsARange) {
  const ParameterGroup group =
      group_named(config_with(Placement::pre, Initialization::ds_init, 4), "attention.q.weight");
  EXPECT_EQ(group.greatest_std, 0.125);
  EXPECT_EQ(group.least_std, 0.0625);
  EXPECT_EQ(start_in_words(group), "uniform, std 0.0625-0.125");
}

TEST(Description, StdOfOrthogonalIsThatOfItsEntries) {
  const Config config = config_with(Placement::pre, Initialization::orthogonal);
  EXPECT_EQ(std_of(config, "ffn.in.weight"), 1.0 / 16);
  EXPECT_EQ(std_of(config, "attention.q.weight"), 1.0 / 8);
  EXPECT_EQ(start_in_words(group_named(config, "ffn.in.weight")), "orthogonal, std 0.0625");
}

TEST(Description, StartInWords) {
  const Config config = config_with(Placement::pre);
  EXPECT_EQ(start_in_words(group_named(config, "attention.q.weight")), "std 0.125");
  EXPECT_EQ(start_in_words(group_named(config, "attention.q.bias")), "0");
  EXPECT_EQ(start_in_words(group_named(config, "attention.norm_in.weight")), "1");
  Config zero = config;
  zero.model.branch_init_scale = 0;
  EXPECT_EQ(start_in_words(group_named(zero, "ffn.out.weight")), "0");
  Config concat = config;
  concat.model.residual = Residual::concat;
  EXPECT_EQ(start_in_words(group_named(concat, "attention.residual.mix.weight")), "[I I]");
  EXPECT_EQ(start_in_words(group_named(config_with(Placement::pre, Initialization::sinusoid), "final_norm.weight")),
            "wave about 1, std 0.070711");
}

TEST(Description, GroupsCountEveryParameterOnce) {
  for (const Placement placement : {Placement::pre, Placement::mix_ln, Placement::normformer}) {
    const Layout layout = make_layout(config_with(placement));
    std::int64_t elements = 0;
    std::set<std::string> names;
    for (const ParameterGroup& group : parameter_groups(layout)) {
      elements += group.elements;
      EXPECT_TRUE(names.insert(group.name).second) << group.name;
    }
    EXPECT_EQ(elements, layout.parameter_count());
  }
}

TEST(Description, ShapesAndCountsOfAGroup) {
  const ParameterGroup group = group_named(config_with(Placement::pre), "ffn.in.weight");
  EXPECT_EQ(group.shape, (std::vector<std::int64_t>{256, 64}));
  EXPECT_EQ(group.tensors, 24);
  EXPECT_EQ(group.elements, 24 * 256 * 64);
  EXPECT_TRUE(group.decays);
  EXPECT_FALSE(group_named(config_with(Placement::pre), "ffn.in.bias").decays);
}

TEST(Description, MixLnHasNormsBehindTheFirstBlocksAndBeforeTheOthers) {
  const Config config = config_with(Placement::mix_ln);
  EXPECT_EQ(group_named(config, "ffn.norm_out.weight").tensors, 6);
  EXPECT_EQ(group_named(config, "ffn.norm_in.weight").tensors, 18);
}

TEST(Description, StagesOfAResNetAreGroupsOfTheirOwn) {
  Config config;
  config.model.stack = StackKind::resnet;
  config.model.norm = Norm::batchnorm;
  config.model.depth = 9;
  config.model.width = 16;
  const Layout layout = make_layout(resolved(config));
  std::vector<std::vector<std::int64_t>> shapes;
  for (const ParameterGroup& group : parameter_groups(layout))
    if (group.name == "conv.in.weight") shapes.push_back(group.shape);
  const std::vector<std::vector<std::int64_t>> expected{
      {16, 16, 3, 3}, {32, 16, 3, 3}, {32, 32, 3, 3}, {64, 32, 3, 3}, {64, 64, 3, 3}};
  EXPECT_EQ(shapes, expected);
}

TEST(Description, EveryParameterIsInExactlyOneDecayGroup) {
  Config config = config_with(Placement::admin);
  const Layout layout = make_layout(config);
  const DecayGroups groups = decay_groups(layout);
  EXPECT_EQ(groups.decayed.elements + groups.not_decayed.elements, layout.parameter_count());
  // Six matrices a block, two embeddings and the head decay; biases, gains and ω do not.
  EXPECT_EQ(groups.decayed.tensors, 24 * 6 + 3);
  EXPECT_EQ(groups.decayed.elements, 24 * 49152 + (64 + 64 + 64) * 64);
  EXPECT_EQ(groups.not_decayed.elements, 24 * (64 * 5 + 256 + 2 * 2 * 64 + 2 * 64));
}

TEST(Description, DerivedPartOfTheConfiguration) {
  const Config config = config_with(Placement::deepnorm, Initialization::xavier_normal, 12);
  const auto derived = derived_json(config, make_layout(config));
  EXPECT_EQ(derived.at("parameters"), make_layout(config).parameter_count());
  EXPECT_NEAR(derived.at("deepnorm_alpha"), 2.213364, 5e-7);
  EXPECT_NEAR(derived.at("deepnorm_beta"), 0.319472, 5e-7);
  EXPECT_EQ(derived.at("final_norm"), false);
  EXPECT_EQ(derived.at("initial_std").at("attention.q.weight"), 0.125);
  EXPECT_FALSE(derived.at("initial_std").contains("attention.q.bias"));
  const auto& blocks = derived.at("formulas").at("blocks");
  ASSERT_EQ(blocks.size(), 1u);
  EXPECT_EQ(blocks[0].at("first"), 1);
  EXPECT_EQ(blocks[0].at("last"), 12);
  EXPECT_EQ(blocks[0].at("ffn"), "LayerNorm(2.213·x + FeedForward(x))");
  EXPECT_EQ(derived.at("formulas").at("end"), "head(x)");
  EXPECT_FALSE(derived.contains("data_files_hash"));
  EXPECT_EQ(derived_json(config, make_layout(config), "abc").at("data_files_hash"), "abc");
}

TEST(Description, DerivedPartHasRangesAndTheSecondStream) {
  const Config mitchell = config_with(Placement::pre, Initialization::mitchell, 4);
  const auto range = derived_json(mitchell, make_layout(mitchell)).at("initial_std").at("ffn.out.weight");
  EXPECT_NEAR(range.at(0), 1 / std::sqrt(2.0 * 256 * 4), 1e-12);
  EXPECT_NEAR(range.at(1), 1 / std::sqrt(2.0 * 256), 1e-12);
  const Config dual = config_with(Placement::resi_dual);
  EXPECT_EQ(derived_json(dual, make_layout(dual)).at("formulas").at("blocks")[0].at("ffn_r"), "r + FeedForward(x)");
}

TEST(Description, HashesOfTheFilesOfTheData) {
  const TemporaryFolder folder;
  std::ofstream(folder / "a.txt") << "foobar";
  std::ofstream(folder / "b.txt");
  Config config;
  EXPECT_EQ(data_files_hash(config), "");
  config.data.files = {folder / "a.txt"};
  EXPECT_EQ(data_files_hash(config), "85944171f73967e8");  // published FNV-1a vector
  config.data.files.push_back(folder / "b.txt");
  EXPECT_EQ(data_files_hash(config), "85944171f73967e8+cbf29ce484222325");
  config.data.files.push_back(folder / "none.txt");
  EXPECT_THROW(data_files_hash(config), Error);
}

}  // namespace
}  // namespace gradflow
