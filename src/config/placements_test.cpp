#include "config/placements.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace gradflow {
namespace {

/// The sub-layer as a formula, x the stream, F the branch, N the norm, S the skip.
std::string formula(const SubLayerPlan& plan) {
  std::string z = plan.norm_in ? "N(x)" : "x";
  if (plan.input_scale == InputScale::inverse_sqrt_layer) z += "/√l";
  std::string f = (plan.norm_query_key_value ? "Fqkv(" : plan.head_scale ? "Fheads(" : "F(") + z + ")";
  if (plan.inner_norm) f = "F∘N" + f.substr(1);
  if (plan.norm_branch) f = "N(" + f + ")";
  std::string skip = plan.skip_is_normed ? z : "x";
  switch (plan.skip_scale) {
    case SkipScale::one: break;
    case SkipScale::deepnorm_alpha: skip = "α·" + skip; break;
    case SkipScale::keel_alpha: skip = "2N·" + skip; break;
    case SkipScale::learned_admin: skip = "ω⊙" + skip; break;
  }
  std::string sum = skip + " + " + f;
  if (plan.adds_block_input) sum += " + block";
  return plan.norm_out ? "N(" + sum + ")" : sum;
}

struct Expected {
  std::string attention;
  std::string ffn;
  FinalStep final_step;
};

// Written from the papers' formulas, not from the table under test.
const std::map<Placement, Expected> expected{
    {Placement::none, {"x + F(x)", "x + F(x)", FinalStep::nothing}},
    {Placement::pre, {"x + F(N(x))", "x + F(N(x))", FinalStep::norm}},
    {Placement::post, {"N(x + F(x))", "N(x + F(x))", FinalStep::nothing}},
    {Placement::deepnorm, {"N(α·x + F(x))", "N(α·x + F(x))", FinalStep::nothing}},
    {Placement::sandwich, {"x + N(F(N(x)))", "x + N(F(N(x)))", FinalStep::norm}},
    {Placement::peri, {"x + N(F(N(x)))", "x + N(F(N(x)))", FinalStep::norm}},
    {Placement::reordered, {"x + N(F(x))", "x + N(F(x))", FinalStep::norm}},
    {Placement::lns, {"x + F(N(x)/√l)", "x + F(N(x)/√l)", FinalStep::norm}},
    {Placement::sub_ln, {"x + F∘N(N(x))", "x + F∘N(N(x))", FinalStep::norm}},
    {Placement::normformer, {"x + N(Fheads(N(x)))", "x + F∘N(N(x))", FinalStep::norm}},
    {Placement::resi_dual, {"N(x + F(x))", "N(x + F(x))", FinalStep::norm_of_second_stream}},
    {Placement::b2t, {"N(x + F(x))", "N(x + F(x) + block)", FinalStep::nothing}},
    {Placement::admin, {"N(ω⊙x + F(x))", "N(ω⊙x + F(x))", FinalStep::nothing}},
    {Placement::keel, {"N(2N·x + F(N(x)))", "N(2N·x + F(N(x)))", FinalStep::nothing}},
    {Placement::hybrid_norm, {"x + Fqkv(x)", "N(x) + F(N(x))", FinalStep::norm}},
};

TEST(Placements, EachRowIsItsFormula) {
  for (const auto& [placement, row] : expected) {
    EXPECT_EQ(formula(placement_row(placement).attention), row.attention) << name_of(placement);
    EXPECT_EQ(formula(placement_row(placement).ffn), row.ffn) << name_of(placement);
    EXPECT_EQ(placement_row(placement).final_step, row.final_step) << name_of(placement);
  }
  EXPECT_EQ(expected.size() + 1, placement_rows().size()) << "all but mix_ln";
}

TEST(Placements, RowsStandInTheOrderOfTheNames) {
  for (std::size_t i = 0; i < placement_rows().size(); ++i)
    EXPECT_EQ(placement_rows()[i].placement, static_cast<Placement>(i)) << name_of(static_cast<Placement>(i));
}

TEST(Placements, OnlyPeriNormsTheEmbeddingAndOnlyResiDualHasASecondStream) {
  for (const PlacementRow& row : placement_rows()) {
    EXPECT_EQ(row.embedding_norm, row.placement == Placement::peri) << name_of(row.placement);
    EXPECT_EQ(row.second_stream, row.placement == Placement::resi_dual) << name_of(row.placement);
    EXPECT_FALSE(row.source.empty()) << name_of(row.placement);
  }
}

TEST(Placements, MixLnChangesFromPostToPre) {
  ModelConfig model;
  model.placement = Placement::mix_ln;
  model.depth = 8;
  const auto of_block = [&](std::int64_t block) { return formula(sub_layer_plan(model, block, SubLayerKind::ffn)); };
  EXPECT_EQ(of_block(2), "N(x + F(x))");
  EXPECT_EQ(of_block(3), "x + F(N(x))");
  model.mix_post_fraction = 0;
  EXPECT_EQ(of_block(1), "x + F(N(x))");
  model.mix_post_fraction = 1;
  EXPECT_EQ(of_block(8), "N(x + F(x))");
}

TEST(Placements, OtherPlacementsAreTheSameInEveryBlock) {
  ModelConfig model;
  model.placement = Placement::b2t;
  EXPECT_EQ(formula(sub_layer_plan(model, 1, SubLayerKind::attention)), "N(x + F(x))");
  EXPECT_EQ(formula(sub_layer_plan(model, 12, SubLayerKind::ffn)), "N(x + F(x) + block)");
}

}  // namespace
}  // namespace gradflow
