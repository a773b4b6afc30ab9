#include "model/transformer_layout.h"

#include <utility>

#include "config/derived.h"
#include "config/placements.h"
#include "model/segment_builder.h"

namespace gradflow {
namespace {

void add_residual(SegmentBuilder& builder, const ModelConfig& model, const std::string& prefix,
                  const SubLayerPlan& plan) {
  const std::int64_t d = model.width;
  if (plan.skip_scale == SkipScale::learned_admin) builder.add(prefix + ".skip", {d}, {.offset = admin_omega(model)});
  switch (model.residual) {
    case Residual::scaled:
    case Residual::rezero: builder.add(prefix + ".scale", {}, {.offset = model.residual_gate.value()}); break;
    case Residual::layerscale: {
      const double gate = model.residual_gate.value();
      builder.add(prefix + ".scale", {d}, builder.start_around(gate, 0.02, gate));
      break;
    }
    case Residual::highway:
      builder.weight(prefix + ".gate", Role::other, d, d);
      builder.bias(prefix + ".gate", d, -2);
      break;
    case Residual::concat:
      if (model.initialization == Initialization::sinusoid)
        builder.weight(prefix + ".mix", Role::other, d, 2 * d);
      else
        builder.add(prefix + ".mix.weight", {d, 2 * d}, {.distribution = Distribution::two_identities});
      break;
    case Residual::add:
    case Residual::none:
    case Residual::sqrt2:
    case Residual::gate_literal: break;
  }
}

/// What follows F: the norm of the branch, the residual form, the norm after the sum.
void add_sum(SegmentBuilder& builder, const ModelConfig& model, const std::string& prefix, const SubLayerPlan& plan) {
  if (plan.norm_branch) builder.norm(prefix + ".norm_branch", model.norm, model.width);
  add_residual(builder, model, prefix + ".residual", plan);
  if (plan.norm_out) builder.norm(prefix + ".norm_out", model.norm, model.width);
}

SegmentSpec attention_segment(const ModelConfig& model, std::int64_t block) {
  SegmentSpec segment{.layer = block, .sublayer = "attention"};
  SegmentBuilder builder(model, segment);
  const SubLayerPlan& plan = sub_layer_plan(model, block, SubLayerKind::attention);
  const std::string prefix = "block." + std::to_string(block) + ".attention";
  const std::int64_t d = model.width, head = d / model.heads;
  if (plan.norm_in) builder.norm(prefix + ".norm_in", model.norm, d);
  // The three weights side by side, then the three biases: one matrix multiplication may serve all of them.
  builder.weight(prefix + ".q", Role::query_key, d, d);
  builder.weight(prefix + ".k", Role::query_key, d, d);
  builder.weight(prefix + ".v", Role::value, d, d);
  if (model.bias)
    for (const char* part : {".q", ".k", ".v"}) builder.bias(prefix + part, d);
  if (model.qk_norm)
    for (const char* part : {".q_norm", ".k_norm"}) builder.norm(prefix + part, Norm::layernorm, head);
  if (plan.norm_query_key_value)
    for (const char* part : {".q_norm", ".k_norm", ".v_norm"}) builder.norm(prefix + part, model.norm, head);
  if (plan.head_scale) builder.add(prefix + ".head_scale", {model.heads}, builder.start_around(1, 0.1, 1));
  if (plan.inner_norm) builder.norm(prefix + ".inner_norm", model.norm, d);
  builder.weight(prefix + ".out", Role::attention_out, d, d);
  if (model.bias) builder.bias(prefix + ".out", d);
  add_sum(builder, model, prefix, plan);
  return segment;
}

SegmentSpec ffn_segment(const ModelConfig& model, std::int64_t block) {
  SegmentSpec segment{.layer = block, .sublayer = "ffn"};
  SegmentBuilder builder(model, segment);
  const SubLayerPlan& plan = sub_layer_plan(model, block, SubLayerKind::ffn);
  const std::string prefix = "block." + std::to_string(block) + ".ffn";
  const std::int64_t d = model.width, inner = model.ffn_width.value();
  if (plan.norm_in) builder.norm(prefix + ".norm_in", model.norm, d);
  builder.weight(prefix + ".in", Role::branch_in, inner, d);
  if (model.bias) builder.bias(prefix + ".in", inner);
  if (plan.inner_norm) builder.norm(prefix + ".inner_norm", model.norm, inner);
  builder.weight(prefix + ".out", Role::branch_out, d, inner);
  if (model.bias) builder.bias(prefix + ".out", d);
  add_sum(builder, model, prefix, plan);
  return segment;
}

}  // namespace

Layout transformer_layout(const Config& config) {
  const ModelConfig& model = config.model;
  const std::int64_t d = model.width, vocabulary = config.data.vocabulary.value();
  const bool sinusoid = model.initialization == Initialization::sinusoid;
  Layout layout;

  SegmentSpec embedding{.layer = 0, .sublayer = "embedding"};
  {
    SegmentBuilder builder(model, embedding);
    const Fill random{.distribution = Distribution::normal, .std = embedding_std(model)};
    const auto fill = [&](double amplitude) {
      return sinusoid ? Fill{.distribution = Distribution::sinusoid, .std = amplitude} : random;
    };
    builder.add("embedding.weight", {vocabulary, d}, fill(1.0));
    if (model.positions == Positions::learned) builder.add("position.weight", {config.data.context, d}, fill(0.3));
    if (has_embedding_norm(model)) builder.norm("embedding_norm", model.norm, d);
  }
  layout.segments.push_back(std::move(embedding));

  for (std::int64_t block = 1; block <= model.depth; ++block) {
    layout.segments.push_back(attention_segment(model, block));
    layout.segments.push_back(ffn_segment(model, block));
  }

  if (has_final_norm(model)) {
    SegmentSpec final_norm{.layer = model.depth + 1, .sublayer = "final_norm"};
    SegmentBuilder(model, final_norm).norm("final_norm", model.norm, d);
    layout.segments.push_back(std::move(final_norm));
  }
  SegmentSpec head{.layer = model.depth + 1, .sublayer = "head"};
  if (!model.tie_embeddings) SegmentBuilder(model, head).weight("head", Role::head, vocabulary, d);
  layout.segments.push_back(std::move(head));
  return layout;
}

}  // namespace gradflow
