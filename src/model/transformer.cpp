#include "model/transformer.h"

#include <cmath>
#include <utility>

#include "config/derived.h"
#include "config/placements.h"
#include "model/attention.h"
#include "model/norm.h"
#include "model/parts.h"

namespace gradflow {
namespace {

/// Tokens [B, T] → stream [B, T, d].
class Embedding final : public AtenSegment {
 public:
  Embedding(const Config& config, const ParameterStore& store)
      : weight_(store.parameter("embedding.weight")),
        dtype_(activation_dtype(config.compute.dtype)),
        dropout_(config.model.dropout, static_cast<std::uint64_t>(config.seed), "embedding",
                 config.train.accumulation) {
    if (config.model.positions == Positions::learned) positions_ = store.parameter("position.weight");
    if (config.model.positions == Positions::sinusoidal)
      positions_ =
          sinusoidal_positions(config.data.context, config.model.width, weight_.options().requires_grad(false));
    if (has_embedding_norm(config.model))
      norm_ = NormSite(store, "embedding_norm", config.model.norm, config.model.norm_epsilon);
  }

 protected:
  Stream compute(const Stream&, const Pass& pass, Inside* inside) override {
    at::Tensor x = at::embedding(weight_, pass.batch->inputs);
    if (positions_.defined()) x = x + positions_.narrow(0, 0, pass.batch->inputs.size(1));
    x = x.to(dtype_);
    if (norm_ && inside != nullptr) inside->norm_input = x;
    return {dropout_(norm_(x, pass), pass), {}};
  }

 private:
  at::Tensor weight_, positions_;
  at::ScalarType dtype_;
  Dropout dropout_;
  NormSite norm_;
};

/// One sub-layer in the general form of config/placements.h; the two kinds differ in F alone.
class SubLayer : public AtenSegment {
 public:
  SubLayer(const Config& config, const ParameterStore& store, std::int64_t block, SubLayerKind kind,
           const std::string& prefix)
      : model_(config.model),
        block_(block),
        plan_(sub_layer_plan(config.model, block, kind)),
        keeps_block_input_(kind == SubLayerKind::attention &&
                           sub_layer_plan(config.model, block, SubLayerKind::ffn).adds_block_input),
        second_stream_(placement_row(config.model.placement).second_stream),
        residual_(store, prefix + ".residual", config.model.residual),
        dropout_(config.model.dropout, static_cast<std::uint64_t>(config.seed), prefix, config.train.accumulation) {
    const auto site = [&](bool present, const char* name) {
      return present ? NormSite(store, prefix + name, model_.norm, model_.norm_epsilon) : NormSite();
    };
    norm_in_ = site(plan_.norm_in, ".norm_in");
    norm_branch_ = site(plan_.norm_branch, ".norm_branch");
    norm_out_ = site(plan_.norm_out, ".norm_out");
    inner_norm_ = site(plan_.inner_norm, ".inner_norm");
    if (plan_.skip_scale == SkipScale::learned_admin) skip_scale_ = store.parameter(prefix + ".residual.skip");
  }

 protected:
  /// F: [B, T, d] → [B, T, d].
  virtual at::Tensor transform(const at::Tensor& z, const Pass& pass, Inside* inside) = 0;

  Stream compute(const Stream& input, const Pass& pass, Inside* inside) final {
    const at::Tensor& x = input.x;
    at::Tensor z = norm_in_(x, pass);
    const at::Tensor kept = plan_.skip_is_normed ? z : x;
    if (plan_.input_scale == InputScale::inverse_sqrt_layer) z = z / std::sqrt(static_cast<double>(block_));

    const at::Tensor transformed = transform(z, pass, inside);
    at::Tensor f = dropout_(norm_branch_(transformed, pass), pass);
    const double factor = branch_factor(model_) * branch_warmup_factor(model_, pass.step, block_);
    if (factor != 1) f = f * factor;

    ResidualForm::Sum sum = residual_(scaled_skip(noted_skip(kept, pass)), f);
    if (!sum.skip.defined()) forget_skip();
    if (plan_.adds_block_input) sum.y = sum.y + input.second;
    if (inside != nullptr) {
      if (norm_out_)
        inside->norm_input = sum.y;
      else if (norm_in_)
        inside->norm_input = x;
      inside->skip = sum.skip;
      if (sum.skip.defined() || model_.residual == Residual::gate_literal) inside->branch = sum.branch;
      if (pass.taps.branch_ends) inside->branch_input = z, inside->branch_output = transformed;
    }
    Stream output{norm_out_(sum.y, pass), {}};
    if (keeps_block_input_) output.second = x;
    // ResiDual's second stream starts at the embedding, which is one tensor until the first sum.
    if (second_stream_) output.second = (input.second.defined() ? input.second : x) + f;
    return output;
  }

  const ModelConfig& model() const { return model_; }
  const SubLayerPlan& plan() const { return plan_; }
  const NormSite& inner_norm() const { return inner_norm_; }

 private:
  at::Tensor scaled_skip(const at::Tensor& kept) const {
    switch (plan_.skip_scale) {
      case SkipScale::one: return kept;
      case SkipScale::deepnorm_alpha: return kept * deepnorm_alpha(model_);
      case SkipScale::keel_alpha: return kept * keel_alpha(model_);
      case SkipScale::learned_admin: return kept * skip_scale_.to(kept.scalar_type());
    }
    return kept;
  }

  ModelConfig model_;
  std::int64_t block_;
  SubLayerPlan plan_;
  bool keeps_block_input_;
  bool second_stream_;
  ResidualForm residual_;
  Dropout dropout_;
  NormSite norm_in_, norm_branch_, norm_out_, inner_norm_;
  at::Tensor skip_scale_;
};

class Attention final : public SubLayer {
 public:
  Attention(const Config& config, const ParameterStore& store, std::int64_t block, const std::string& prefix)
      : SubLayer(config, store, block, SubLayerKind::attention, prefix),
        q_(store, prefix + ".q"),
        k_(store, prefix + ".k"),
        v_(store, prefix + ".v"),
        out_(store, prefix + ".out"),
        qkv_(store, {prefix + ".q", prefix + ".k", prefix + ".v"}) {
    const auto site = [&](Norm norm, const char* name) {
      return NormSite(store, prefix + name, norm, model().norm_epsilon);
    };
    if (model().qk_norm) {
      q_norm_ = site(Norm::layernorm, ".q_norm");
      k_norm_ = site(Norm::layernorm, ".k_norm");
    }
    if (plan().norm_query_key_value) {
      q_norm_ = site(model().norm, ".q_norm");
      k_norm_ = site(model().norm, ".k_norm");
      v_norm_ = site(model().norm, ".v_norm");
    }
    if (plan().head_scale) head_scale_ = store.parameter(prefix + ".head_scale");
  }

 protected:
  at::Tensor transform(const at::Tensor& z, const Pass& pass, Inside* inside) override {
    const std::int64_t batch = z.size(0), tokens = z.size(1), width = z.size(2), heads = model().heads;
    const auto per_head = [&](const at::Tensor& x) {
      return x.view({batch, tokens, heads, width / heads}).transpose(1, 2);
    };
    // In a graph of the caller's own (nothing is kept and gradients are on) parameters are differentiated by name.
    const bool by_name = !pass.keep && at::GradMode::is_enabled();
    const std::vector<at::Tensor> projected = qkv_ && !by_name ? qkv_(z) : std::vector<at::Tensor>{q_(z), k_(z), v_(z)};
    const at::Tensor q = q_norm_(per_head(projected[0]), pass);
    const at::Tensor k = k_norm_(per_head(projected[1]), pass);
    const at::Tensor v = v_norm_(per_head(projected[2]), pass);
    if (inside != nullptr && pass.taps.attention) inside->query = q, inside->key = k;
    at::Tensor y = attend(q, k, v, model().causal, pass.batch->real);
    if (head_scale_.defined()) y = y * head_scale_.to(y.scalar_type()).view({1, heads, 1, 1});
    y = y.transpose(1, 2).reshape({batch, tokens, width});
    return out_(inner_norm()(y, pass));
  }

 private:
  Linear q_, k_, v_, out_;
  JoinedLinear qkv_;
  NormSite q_norm_, k_norm_, v_norm_;
  at::Tensor head_scale_;
};

class FeedForward final : public SubLayer {
 public:
  FeedForward(const Config& config, const ParameterStore& store, std::int64_t block, const std::string& prefix)
      : SubLayer(config, store, block, SubLayerKind::ffn, prefix),
        in_(store, prefix + ".in"),
        out_(store, prefix + ".out") {}

 protected:
  at::Tensor transform(const at::Tensor& z, const Pass& pass, Inside* inside) override {
    const at::Tensor activated = activate(in_(z), model().activation);
    if (inside != nullptr && pass.taps.activation) inside->activation = activated;
    return out_(inner_norm()(activated, pass));
  }

 private:
  Linear in_, out_;
};

/// N(x), or x + N(r) with ResiDual's second stream r.
class FinalNorm final : public AtenSegment {
 public:
  FinalNorm(const Config& config, const ParameterStore& store)
      : norm_(store, "final_norm", config.model.norm, config.model.norm_epsilon) {}

 protected:
  Stream compute(const Stream& input, const Pass& pass, Inside* inside) override {
    const at::Tensor& entering = input.second.defined() ? input.second : input.x;
    if (inside != nullptr) inside->norm_input = entering;
    const at::Tensor y = norm_(entering, pass);
    return {input.second.defined() ? input.x + y : y, {}};
  }

 private:
  NormSite norm_;
};

/// Logits [B, T, V] = h·Wᵀ and the mean cross-entropy over the tokens that have a target, in nats.
class Head final : public AtenSegment {
 public:
  Head(const Config& config, const ParameterStore& store)
      : weight_(store.parameter(config.model.tie_embeddings ? "embedding.weight" : "head.weight")) {}

 protected:
  Stream compute(const Stream& input, const Pass& pass, Inside* inside) override {
    at::Tensor logits = at::linear(input.x, weight_.to(input.x.scalar_type()));
    if (logits.scalar_type() == at::kBFloat16) logits = logits.to(at::kFloat);
    if (inside != nullptr) inside->logits = logits;
    return {at::cross_entropy_loss(logits.flatten(0, 1), pass.batch->targets.flatten()), {}};
  }

 private:
  at::Tensor weight_;
};

}  // namespace

std::vector<std::unique_ptr<Segment>> make_transformer(const Config& config, const ParameterStore& store) {
  std::vector<std::unique_ptr<Segment>> segments;
  segments.push_back(std::make_unique<Embedding>(config, store));
  for (std::int64_t block = 1; block <= config.model.depth; ++block) {
    const std::string prefix = "block." + std::to_string(block);
    segments.push_back(std::make_unique<Attention>(config, store, block, prefix + ".attention"));
    segments.push_back(std::make_unique<FeedForward>(config, store, block, prefix + ".ffn"));
  }
  if (has_final_norm(config.model)) segments.push_back(std::make_unique<FinalNorm>(config, store));
  segments.push_back(std::make_unique<Head>(config, store));
  return segments;
}

at::Tensor sinusoidal_positions(std::int64_t tokens, std::int64_t width, const at::TensorOptions& options) {
  const at::Tensor table = at::empty({tokens, width}, at::kDouble);
  auto element = table.accessor<double, 2>();
  for (std::int64_t t = 0; t < tokens; ++t)
    for (std::int64_t i = 0; i < width; ++i) {
      const double angle =
          static_cast<double>(t) / std::pow(10000.0, static_cast<double>(i / 2 * 2) / static_cast<double>(width));
      element[t][i] = i % 2 == 0 ? std::sin(angle) : std::cos(angle);
    }
  return table.to(options);
}

}  // namespace gradflow
