#include "model/layout.h"

#include <cmath>
#include <numbers>
#include <utility>

#include "config/derived.h"
#include "config/placements.h"

namespace gradflow {
namespace {

/// What a matrix is for; the schemes treat them differently.
enum class Role { query_key, value, attention_out, ffn_in, ffn_out, head, other };

bool is_last_of_branch(Role role) { return role == Role::attention_out || role == Role::ffn_out; }
bool takes_placement_gain(Role role) {
  return role == Role::value || role == Role::attention_out || role == Role::ffn_in || role == Role::ffn_out;
}

/// The initial distribution of a matrix [out, in] of block l (from 1; 1 outside the blocks). Schemes: models.md.
Fill matrix_fill(const ModelConfig& model, Role role, double in, double out, double l) {
  const double blocks = static_cast<double>(model.depth);
  const double xavier = std::sqrt(2 / (in + out));
  Fill fill{.distribution = Distribution::normal, .std = xavier};
  switch (model.initialization) {
    case Initialization::xavier_normal: break;
    case Initialization::xavier_uniform: fill.distribution = Distribution::uniform; break;
    case Initialization::he_normal: fill.std = std::sqrt(2 / in); break;
    case Initialization::normal: fill.std = model.init_std; break;
    case Initialization::gpt2:  // Radford et al. 2019: residual projections divided by the root of their number
      fill.std = is_last_of_branch(role) ? model.init_std / std::sqrt(2 * blocks) : model.init_std;
      break;
    case Initialization::orthogonal: fill = {.distribution = Distribution::orthogonal, .std = 1}; break;
    case Initialization::ds_init:  // Zhang et al. 2019
      fill = {.distribution = Distribution::uniform, .std = xavier / std::sqrt(l)};
      break;
    case Initialization::fixup:  // Zhang et al. 2019; two layers a branch, 2N branches
      fill.std = std::sqrt(2 / in);
      if (is_last_of_branch(role) || role == Role::head)
        fill.std = 0;
      else if (role != Role::other)
        fill.std /= std::sqrt(2 * blocks);
      break;
    case Initialization::t_fixup:  // Huang et al. 2020
      if (takes_placement_gain(role)) fill.std = 0.67 * std::pow(blocks, -0.25) * xavier;
      break;
    case Initialization::mitchell:  // OLMo
      fill.std = is_last_of_branch(role) ? 1 / std::sqrt(2 * in * l) : 1 / std::sqrt(in);
      break;
    case Initialization::sinusoid:
      fill = {.distribution = Distribution::sinusoid,
              .std = role == Role::head ? 1 / std::sqrt(in) : xavier * std::numbers::sqrt2};
      break;
  }
  if (takes_placement_gain(role)) fill.std *= placement_gain(model);
  if (is_last_of_branch(role)) fill.std *= model.branch_init_scale;
  if (role == Role::query_key) fill.std *= model.query_key_init_scale;
  return fill;
}

/// Collects the parameters of one segment; knows the model's schemes for what is not a matrix.
class SegmentBuilder {
 public:
  SegmentBuilder(const ModelConfig& model, SegmentSpec& segment) : model_(model), segment_(segment) {}

  void add(std::string name, std::vector<std::int64_t> shape, Fill fill) {
    segment_.parameters.push_back({std::move(name), std::move(shape), fill});
  }

  void weight(const std::string& name, Role role, std::int64_t out, std::int64_t in) {
    const double l = segment_.layer >= 1 && segment_.layer <= model_.depth ? static_cast<double>(segment_.layer) : 1;
    add(name + ".weight", {out, in}, matrix_fill(model_, role, static_cast<double>(in), static_cast<double>(out), l));
  }

  /// Under `sinusoid` every bias, a gate's too, is a wave around zero.
  void bias(const std::string& name, std::int64_t size, double start = 0) {
    add(name + ".bias", {size}, start_around(start, 0.05, 0));
  }

  void norm(const std::string& name, Norm norm, std::int64_t features) {
    if (norm == Norm::none) return;
    if (norm == Norm::dyt) add(name + ".alpha", {}, {.offset = 0.5});
    add(name + ".weight", {features}, start_around(1, 0.1, 1));
    if (norm != Norm::rmsnorm) add(name + ".bias", {features}, start_around(0, 0.05, 0));
    if (norm == Norm::batchnorm) {
      segment_.buffers.push_back({name + ".running_mean", features, 0});
      segment_.buffers.push_back({name + ".running_var", features, 1});
    }
  }

  /// `start` everywhere; under `sinusoid` a wave of the given amplitude around `middle`, so that every element counts.
  Fill start_around(double start, double amplitude, double middle) const {
    if (model_.initialization == Initialization::sinusoid)
      return {.distribution = Distribution::sinusoid, .std = amplitude, .offset = middle};
    return {.offset = start};
  }

 private:
  const ModelConfig& model_;
  SegmentSpec& segment_;
};

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

SegmentSpec attention_segment(const ModelConfig& model, std::int64_t block) {
  SegmentSpec segment{.layer = block, .sublayer = "attention"};
  SegmentBuilder builder(model, segment);
  const SubLayerPlan& plan = sub_layer_plan(model, block, SubLayerKind::attention);
  const std::string prefix = "block." + std::to_string(block) + ".attention";
  const std::int64_t d = model.width, head = d / model.heads;
  // The three weights side by side, then the three biases: one matrix multiplication may serve all of them.
  builder.weight(prefix + ".q", Role::query_key, d, d);
  builder.weight(prefix + ".k", Role::query_key, d, d);
  builder.weight(prefix + ".v", Role::value, d, d);
  if (model.bias)
    for (const char* part : {".q", ".k", ".v"}) builder.bias(prefix + part, d);
  builder.weight(prefix + ".out", Role::attention_out, d, d);
  if (model.bias) builder.bias(prefix + ".out", d);
  if (model.qk_norm)
    for (const char* part : {".q_norm", ".k_norm"}) builder.norm(prefix + part, Norm::layernorm, head);
  if (plan.norm_query_key_value)
    for (const char* part : {".q_norm", ".k_norm", ".v_norm"}) builder.norm(prefix + part, model.norm, head);
  if (plan.head_scale) builder.add(prefix + ".head_scale", {model.heads}, builder.start_around(1, 0.1, 1));
  if (plan.inner_norm) builder.norm(prefix + ".inner_norm", model.norm, d);
  if (plan.norm_in) builder.norm(prefix + ".norm_in", model.norm, d);
  if (plan.norm_branch) builder.norm(prefix + ".norm_branch", model.norm, d);
  if (plan.norm_out) builder.norm(prefix + ".norm_out", model.norm, d);
  add_residual(builder, model, prefix + ".residual", plan);
  return segment;
}

SegmentSpec ffn_segment(const ModelConfig& model, std::int64_t block) {
  SegmentSpec segment{.layer = block, .sublayer = "ffn"};
  SegmentBuilder builder(model, segment);
  const SubLayerPlan& plan = sub_layer_plan(model, block, SubLayerKind::ffn);
  const std::string prefix = "block." + std::to_string(block) + ".ffn";
  const std::int64_t d = model.width, inner = model.ffn_width.value();
  builder.weight(prefix + ".in", Role::ffn_in, inner, d);
  if (model.bias) builder.bias(prefix + ".in", inner);
  builder.weight(prefix + ".out", Role::ffn_out, d, inner);
  if (model.bias) builder.bias(prefix + ".out", d);
  if (plan.inner_norm) builder.norm(prefix + ".inner_norm", model.norm, inner);
  if (plan.norm_in) builder.norm(prefix + ".norm_in", model.norm, d);
  if (plan.norm_branch) builder.norm(prefix + ".norm_branch", model.norm, d);
  if (plan.norm_out) builder.norm(prefix + ".norm_out", model.norm, d);
  add_residual(builder, model, prefix + ".residual", plan);
  return segment;
}

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

}  // namespace

std::int64_t ParameterSpec::size() const {
  std::int64_t product = 1;
  for (const std::int64_t extent : shape) product *= extent;
  return product;
}

std::int64_t Layout::parameter_count() const {
  std::int64_t count = 0;
  for (const SegmentSpec& segment : segments)
    for (const ParameterSpec& parameter : segment.parameters) count += parameter.size();
  return count;
}

Layout make_layout(const Config& config) { return transformer_layout(config); }

}  // namespace gradflow
