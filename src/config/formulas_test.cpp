#include "config/formulas.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gradflow {
namespace {

ModelConfig model_with(Placement placement, Residual residual = Residual::add) {
  ModelConfig model;
  model.placement = placement;
  model.residual = residual;
  return model;
}

/// The two sub-layers of the first group of blocks, each in one line.
std::vector<std::string> lines(const ModelConfig& model) {
  const StackFormulas formulas = stack_formulas(model);
  std::vector<std::string> out;
  for (const SubLayerFormula& sublayer : formulas.blocks.front().sublayers) out.push_back(sublayer.stream.line());
  return out;
}

std::string first_line(const ModelConfig& model) { return lines(model).front(); }

std::string branch_line(const ModelConfig& model, std::size_t sublayer) {
  return stack_formulas(model).blocks.front().sublayers.at(sublayer).branch.line();
}

using Lines = std::vector<std::string>;

TEST(Formulas, EveryPlacement) {
  EXPECT_EQ(lines(model_with(Placement::none)), (Lines{"x + Attention(x)", "x + FeedForward(x)"}));
  EXPECT_EQ(lines(model_with(Placement::pre)), (Lines{"x + Attention(LayerNorm(x))", "x + FeedForward(LayerNorm(x))"}));
  EXPECT_EQ(lines(model_with(Placement::post)),
            (Lines{"LayerNorm(x + Attention(x))", "LayerNorm(x + FeedForward(x))"}));
  EXPECT_EQ(lines(model_with(Placement::deepnorm)),
            (Lines{"LayerNorm(2.213·x + Attention(x))", "LayerNorm(2.213·x + FeedForward(x))"}));
  for (const Placement placement : {Placement::sandwich, Placement::peri})
    EXPECT_EQ(lines(model_with(placement)),
              (Lines{"x + LayerNorm(Attention(LayerNorm(x)))", "x + LayerNorm(FeedForward(LayerNorm(x)))"}));
  EXPECT_EQ(lines(model_with(Placement::reordered)),
            (Lines{"x + LayerNorm(Attention(x))", "x + LayerNorm(FeedForward(x))"}));
  EXPECT_EQ(lines(model_with(Placement::lns)), (Lines{"x + Attention(LayerNorm(x)/√l), l the block's number",
                                                      "x + FeedForward(LayerNorm(x)/√l), l the block's number"}));
  EXPECT_EQ(lines(model_with(Placement::sub_ln)),
            (Lines{"x + Attention(LayerNorm(x))", "x + FeedForward(LayerNorm(x))"}));
  EXPECT_EQ(lines(model_with(Placement::normformer)),
            (Lines{"x + LayerNorm(Attention(LayerNorm(x)))", "x + FeedForward(LayerNorm(x))"}));
  EXPECT_EQ(lines(model_with(Placement::resi_dual)),
            (Lines{"LayerNorm(x + Attention(x))", "LayerNorm(x + FeedForward(x))"}));
  EXPECT_EQ(lines(model_with(Placement::b2t)),
            (Lines{"LayerNorm(x + Attention(x))", "LayerNorm(x + FeedForward(x) + u), u the block's input"}));
  EXPECT_EQ(lines(model_with(Placement::admin)),
            (Lines{"LayerNorm(ω⊙x + Attention(x)), ω learned, starts at 2.601",
                   "LayerNorm(ω⊙x + FeedForward(x)), ω learned, starts at 2.601"}));
  EXPECT_EQ(lines(model_with(Placement::keel)),
            (Lines{"LayerNorm(24·x + Attention(LayerNorm(x)))", "LayerNorm(24·x + FeedForward(LayerNorm(x)))"}));
  EXPECT_EQ(lines(model_with(Placement::hybrid_norm)),
            (Lines{"x + Attention(x)", "z + FeedForward(z), z = LayerNorm(x)"}));
}

TEST(Formulas, MixLnIsPostThenPre) {
  const StackFormulas formulas = stack_formulas(model_with(Placement::mix_ln));
  ASSERT_EQ(formulas.blocks.size(), 2u);
  EXPECT_EQ(block_range(formulas.blocks[0]), "blocks 1-3");
  EXPECT_EQ(formulas.blocks[0].sublayers[0].stream.line(), "LayerNorm(x + Attention(x))");
  EXPECT_EQ(block_range(formulas.blocks[1]), "blocks 4-12");
  EXPECT_EQ(formulas.blocks[1].sublayers[1].stream.line(), "x + FeedForward(LayerNorm(x))");
}

TEST(Formulas, OneBlockIsNamedInTheSingular) {
  ModelConfig model;
  model.depth = 1;
  EXPECT_EQ(block_range(stack_formulas(model).blocks.front()), "block 1");
}

TEST(Formulas, EveryResidualForm) {
  const auto pre = [](Residual residual) { return first_line(model_with(Placement::pre, residual)); };
  EXPECT_EQ(pre(Residual::none), "Attention(LayerNorm(x))");
  EXPECT_EQ(pre(Residual::scaled), "x + a·Attention(LayerNorm(x)), a learned, starts at 1");
  EXPECT_EQ(pre(Residual::rezero), "x + a·Attention(LayerNorm(x)), a learned, starts at 0");
  EXPECT_EQ(pre(Residual::sqrt2), "(x + Attention(LayerNorm(x)))/√2");
  EXPECT_EQ(pre(Residual::layerscale), "x + λ⊙Attention(LayerNorm(x)), λ learned, starts at 0.1");
  EXPECT_EQ(pre(Residual::highway),
            "t⊙Attention(LayerNorm(x)) + (1 − t)⊙x, t = σ(W·x + b); W and b learned, b starts at -2");
  EXPECT_EQ(pre(Residual::concat), "[x; Attention(LayerNorm(x))]·Wᵀ, W learned, starts at [I I]");
  EXPECT_EQ(pre(Residual::gate_literal), "σ(x)⊙Attention(LayerNorm(x))");
}

TEST(Formulas, ResidualFormsInsideAnOuterNorm) {
  EXPECT_EQ(lines(model_with(Placement::post, Residual::rezero)).back(),
            "LayerNorm(x + a·FeedForward(x)), a learned, starts at 0");
  EXPECT_EQ(first_line(model_with(Placement::post, Residual::sqrt2)), "LayerNorm((x + Attention(x))/√2)");
  EXPECT_EQ(first_line(model_with(Placement::reordered, Residual::layerscale)),
            "x + λ⊙LayerNorm(Attention(x)), λ learned, starts at 0.1");
  EXPECT_EQ(first_line(model_with(Placement::lns, Residual::rezero)),
            "x + a·Attention(LayerNorm(x)/√l), l the block's number; a learned, starts at 0");
}

TEST(Formulas, TheGateThatWasConfigured) {
  ModelConfig model = model_with(Placement::none, Residual::scaled);
  model.residual_gate = 0.25;
  EXPECT_EQ(first_line(model), "x + a·Attention(x), a learned, starts at 0.25");
}

TEST(Formulas, FactorsOnTheBranch) {
  ModelConfig model = model_with(Placement::pre);
  model.branch_scale_exponent = 0.5;
  EXPECT_EQ(first_line(model), "x + 0.2887·Attention(LayerNorm(x))");
  model.branch_warmup = 100;
  EXPECT_EQ(first_line(model),
            "x + 0.2887·min(s/(100·l), 1)·Attention(LayerNorm(x)), l the block's number; s the update");
  model.branch_scale_exponent = 0;
  model.branch_scale = -0.5;
  model.branch_warmup = 1;
  EXPECT_EQ(first_line(model), "x − 0.5·min(s/l, 1)·Attention(LayerNorm(x)), l the block's number; s the update");
  model.branch_warmup = 0;
  model.residual = Residual::concat;
  EXPECT_EQ(first_line(model), "[x; -0.5·Attention(LayerNorm(x))]·Wᵀ, W learned, starts at [I I]");
  model.residual = Residual::rezero;
  model.branch_scale = 2;
  EXPECT_EQ(first_line(model), "x + 2·a·Attention(LayerNorm(x)), a learned, starts at 0");
}

TEST(Formulas, ConstantsOfDeepNorm) {
  ModelConfig model = model_with(Placement::deepnorm);
  model.depth = 24;
  EXPECT_EQ(first_line(model), "LayerNorm(2.632·x + Attention(x))");
  model.deepnorm_alpha = 1;
  EXPECT_EQ(first_line(model), "LayerNorm(x + Attention(x))");
  model.deepnorm_alpha = 0.5;
  EXPECT_EQ(first_line(model), "LayerNorm(0.5·x + Attention(x))");
}

TEST(Formulas, NamesOfTheNorms) {
  const auto pre = [](Norm norm) {
    ModelConfig model;
    model.norm = norm;
    return first_line(model);
  };
  EXPECT_EQ(pre(Norm::none), "x + Attention(x)");
  EXPECT_EQ(pre(Norm::rmsnorm), "x + Attention(RMSNorm(x))");
  EXPECT_EQ(pre(Norm::center), "x + Attention(Center(x))");
  EXPECT_EQ(pre(Norm::batchnorm), "x + Attention(BatchNorm(x))");
  EXPECT_EQ(pre(Norm::dyt), "x + Attention(DyT(x))");
}

TEST(Formulas, DropoutStandsWhereItActs) {
  ModelConfig model = model_with(Placement::sandwich);
  model.dropout = 0.1;
  EXPECT_EQ(first_line(model), "x + Dropout(LayerNorm(Attention(LayerNorm(x)))), Dropout with p = 0.1");
  EXPECT_EQ(stack_formulas(model).start.line(), "Dropout(embedding(token) + position(place)), Dropout with p = 0.1");
}

TEST(Formulas, SecondStreamOfResiDual) {
  ModelConfig model = model_with(Placement::resi_dual);
  model.branch_scale = 0.5;
  const StackFormulas formulas = stack_formulas(model);
  EXPECT_EQ(formulas.blocks.front().sublayers[0].second, "r + 0.5·Attention(x)");
  EXPECT_EQ(formulas.blocks.front().sublayers[1].second, "r + 0.5·FeedForward(x)");
  EXPECT_EQ(formulas.end.line(), "head(x + LayerNorm(r))");
  EXPECT_EQ(stack_formulas(model_with(Placement::post)).blocks.front().sublayers[0].second, "");
}

TEST(Formulas, WhatFollowsTheLastBlock) {
  EXPECT_EQ(stack_formulas(model_with(Placement::pre)).end.line(), "head(LayerNorm(x))");
  EXPECT_EQ(stack_formulas(model_with(Placement::post)).end.line(), "head(x)");
  ModelConfig model = model_with(Placement::pre);
  model.final_norm = false;
  EXPECT_EQ(stack_formulas(model).end.line(), "head(x)");
  model.tie_embeddings = true;
  EXPECT_EQ(stack_formulas(model).end.line(), "x·Eᵀ, E the token embedding, tied");
  model = model_with(Placement::resi_dual);
  model.final_norm = false;
  EXPECT_EQ(stack_formulas(model).end.line(), "head(x)");
  model.final_norm = true;
  model.tie_embeddings = true;
  EXPECT_EQ(stack_formulas(model).end.line(), "(x + LayerNorm(r))·Eᵀ, E the token embedding, tied");
}

TEST(Formulas, EmbeddingAndPositions) {
  ModelConfig model = model_with(Placement::peri);
  EXPECT_EQ(stack_formulas(model).start.line(), "LayerNorm(embedding(token) + position(place))");
  model.embedding_norm = false;
  model.positions = Positions::sinusoidal;
  EXPECT_EQ(stack_formulas(model).start.line(), "embedding(token) + sinusoid(place)");
  model.positions = Positions::none;
  EXPECT_EQ(stack_formulas(model).start.line(), "embedding(token)");
}

TEST(Formulas, InsideTheBranches) {
  EXPECT_EQ(branch_line(model_with(Placement::pre), 0),
            "Attention(z) = out(softmax(q(z)·k(z)ᵀ/√16)·v(z)), 4 heads, causal");
  EXPECT_EQ(branch_line(model_with(Placement::pre), 1), "FeedForward(z) = out(GELU(in(z)))");
  EXPECT_EQ(branch_line(model_with(Placement::sub_ln), 0),
            "Attention(z) = out(LayerNorm(softmax(q(z)·k(z)ᵀ/√16)·v(z))), 4 heads, causal");
  EXPECT_EQ(branch_line(model_with(Placement::sub_ln), 1), "FeedForward(z) = out(LayerNorm(GELU(in(z))))");
  EXPECT_EQ(branch_line(model_with(Placement::normformer), 0),
            "Attention(z) = out(h⊙softmax(q(z)·k(z)ᵀ/√16)·v(z)), 4 heads, causal; h learned, starts at 1, a number "
            "a head");
  EXPECT_EQ(branch_line(model_with(Placement::normformer), 1), "FeedForward(z) = out(LayerNorm(GELU(in(z))))");
  ModelConfig model = model_with(Placement::hybrid_norm);
  model.norm = Norm::rmsnorm;
  EXPECT_EQ(branch_line(model, 0),
            "Attention(z) = out(softmax(RMSNorm(q(z))·RMSNorm(k(z))ᵀ/√16)·RMSNorm(v(z))), 4 heads, causal; RMSNorm a "
            "head");
  model = model_with(Placement::pre);
  model.norm = Norm::rmsnorm;
  model.qk_norm = true;
  model.causal = false;
  model.heads = 1;
  EXPECT_EQ(branch_line(model, 0),
            "Attention(z) = out(softmax(LayerNorm(q(z))·LayerNorm(k(z))ᵀ/√64)·v(z)), 1 head, not causal; LayerNorm a "
            "head");
  model.activation = Activation::identity;
  EXPECT_EQ(branch_line(model, 1), "FeedForward(z) = out(in(z))");
}

TEST(Formulas, SinusoidClaimsNoStartItDoesNotHave) {
  ModelConfig model = model_with(Placement::pre, Residual::concat);
  model.initialization = Initialization::sinusoid;
  EXPECT_EQ(first_line(model), "[x; Attention(LayerNorm(x))]·Wᵀ, W learned");
  model.residual = Residual::rezero;
  EXPECT_EQ(first_line(model), "x + a·Attention(LayerNorm(x)), a learned, starts at 0");
}

TEST(Formulas, Mlp) {
  ModelConfig model = model_with(Placement::pre);
  model.stack = StackKind::mlp;
  model.activation = Activation::relu;
  EXPECT_EQ(lines(model), Lines{"x + out(ReLU(LayerNorm(in(ReLU(LayerNorm(x))))))"});
  EXPECT_EQ(stack_formulas(model).start.line(), "stem(input)");
  EXPECT_EQ(stack_formulas(model).end.line(), "head(ReLU(LayerNorm(x)))");
  model.block_layers = 1;
  EXPECT_EQ(lines(model), Lines{"x + in(ReLU(LayerNorm(x)))"});
  model.placement = Placement::post;
  EXPECT_EQ(lines(model), Lines{"ReLU(x + LayerNorm(in(x)))"});
  model.block_layers = 2;
  model.residual = Residual::sqrt2;
  EXPECT_EQ(lines(model), Lines{"ReLU((x + LayerNorm(out(ReLU(LayerNorm(in(x))))))/√2)"});
  EXPECT_EQ(stack_formulas(model).end.line(), "head(x)");
  EXPECT_EQ(stack_formulas(model).blocks.front().sublayers.front().sublayer, "dense");
}

TEST(Formulas, ResNetHalvesWhereTheWidthDoubles) {
  ModelConfig model = model_with(Placement::post);
  model.stack = StackKind::resnet;
  model.norm = Norm::batchnorm;
  model.activation = Activation::relu;
  model.depth = 9;
  const StackFormulas formulas = stack_formulas(model);
  EXPECT_EQ(formulas.start.line(), "ReLU(BatchNorm(stem(input)))");
  ASSERT_EQ(formulas.blocks.size(), 5u);
  const std::string halving =
      "ReLU(S(x) + BatchNorm(out(ReLU(BatchNorm(in(x)))))), in with stride 2; S takes every second row and column and "
      "appends channels of zeros";
  const std::string plain = "ReLU(x + BatchNorm(out(ReLU(BatchNorm(in(x))))))";
  EXPECT_EQ(block_range(formulas.blocks[0]), "blocks 1-3");
  EXPECT_EQ(formulas.blocks[0].sublayers[0].stream.line(), plain);
  EXPECT_EQ(block_range(formulas.blocks[1]), "block 4");
  EXPECT_EQ(formulas.blocks[1].sublayers[0].stream.line(), halving);
  EXPECT_EQ(block_range(formulas.blocks[3]), "block 7");
  EXPECT_EQ(block_range(formulas.blocks[4]), "blocks 8-9");
  EXPECT_EQ(formulas.end.line(), "head(mean(x)), mean over the image");
  model.residual = Residual::none;
  EXPECT_EQ(stack_formulas(model).blocks[1].sublayers[0].stream.line(),
            "ReLU(BatchNorm(out(ReLU(BatchNorm(in(x)))))), in with stride 2");
}

}  // namespace
}  // namespace gradflow
