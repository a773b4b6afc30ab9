#include "config/formulas.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "config/derived.h"
#include "config/placements.h"
#include "core/numbers.h"

namespace gradflow {
namespace {

std::string number(double value) { return significant(value, 4); }

std::string_view norm_name(Norm norm) {
  switch (norm) {
    case Norm::none: return "";
    case Norm::layernorm: return "LayerNorm";
    case Norm::rmsnorm: return "RMSNorm";
    case Norm::center: return "Center";
    case Norm::batchnorm: return "BatchNorm";
    case Norm::dyt: return "DyT";
  }
  return "";
}

std::string_view activation_name(Activation activation) {
  switch (activation) {
    case Activation::gelu: return "GELU";
    case Activation::relu: return "ReLU";
    case Activation::tanh: return "tanh";
    case Activation::identity: return "";
  }
  return "";
}

/// NAME(inside); the inside alone where there is no name.
std::string named(std::string_view name, const std::string& inside) {
  return name.empty() ? inside : fmt::format("{}({})", name, inside);
}

/// Writes the formulas of one model.
class Writer {
 public:
  explicit Writer(const ModelConfig& model) : model_(model) {}

  Formula start() const {
    std::string x;
    if (model_.stack == StackKind::transformer) {
      x = "embedding(token)";
      if (model_.positions == Positions::learned) x += " + position(place)";
      if (model_.positions == Positions::sinusoidal) x += " + sinusoid(place)";
      x = norm(x, has_embedding_norm(model_));
    } else {
      x = "stem(input)";
      if (model_.stack == StackKind::resnet && is_post()) x = act(norm(x));
    }
    Formula formula{x, {}};
    drop_out(formula);
    return formula;
  }

  SubLayerFormula transformer_sublayer(std::int64_t block, SubLayerKind kind) const {
    const SubLayerPlan& plan = sub_layer_plan(model_, block, kind);
    const bool attention = kind == SubLayerKind::attention;
    SubLayerFormula out{.sublayer = attention ? "attention" : "ffn",
                        .stream = {},
                        .second = "",
                        .branch = attention ? attention_branch(plan) : ffn_branch(plan)};
    std::vector<std::string>& where = out.stream.where;

    std::string z = norm("x", plan.norm_in), skip = "x";
    if (plan.skip_is_normed && plan.norm_in) {
      where.push_back("z = " + z);
      z = skip = "z";
    }
    if (plan.input_scale == InputScale::inverse_sqrt_layer) z += "/√l";
    if (plan.input_scale == InputScale::inverse_sqrt_layer || model_.branch_warmup > 0)
      where.push_back("l the block's number");
    Formula f{named(attention ? "Attention" : "FeedForward", z), {}};
    f.text = norm(f.text, plan.norm_branch);
    drop_out(f);

    switch (plan.skip_scale) {
      case SkipScale::one: break;
      case SkipScale::deepnorm_alpha: skip = scaled(deepnorm_alpha(model_), skip); break;
      case SkipScale::keel_alpha: skip = scaled(keel_alpha(model_), skip); break;
      case SkipScale::learned_admin:
        skip = "ω⊙" + skip;
        where.push_back("ω learned, starts at " + number(admin_omega(model_)));
        break;
    }
    std::string y = joined(skip, f.text, where);
    if (plan.adds_block_input) {
      y += " + u";
      where.push_back("u the block's input");
    }
    out.stream.text = norm(y, plan.norm_out);
    if (placement_row(model_.placement).second_stream) out.second = plus("r", f.text);
    where.insert(where.end(), f.where.begin(), f.where.end());
    return out;
  }

  /// A block of an mlp or resnet: norms at the entrance of both weight layers (`pre`, ResNet v2) or behind them
  /// (`post`, v1).
  SubLayerFormula feedforward_block(std::int64_t block) const {
    const bool images = model_.stack == StackKind::resnet;
    const bool halves = images && block > 1 && resnet_stage(model_, block) != resnet_stage(model_, block - 1);
    SubLayerFormula out{.sublayer = images ? "conv" : "dense", .stream = {}, .second = "", .branch = {}};
    std::vector<std::string>& where = out.stream.where;
    Formula f;
    if (is_post()) {
      f.text = norm("in(x)");
      if (model_.block_layers == 2) f.text = norm(named("out", act(f.text)));
    } else {
      f.text = named("in", act(norm("x")));
      if (model_.block_layers == 2) f.text = named("out", act(norm(f.text)));
    }
    drop_out(f);
    const bool skips = model_.residual != Residual::none;
    if (model_.branch_warmup > 0) where.push_back("l the block's number");
    const std::string y = joined(halves ? "S(x)" : "x", f.text, where);
    out.stream.text = is_post() ? act(y) : y;
    if (halves) {
      where.push_back("in with stride 2");
      if (skips) where.push_back("S takes every second row and column and appends channels of zeros");
    }
    where.insert(where.end(), f.where.begin(), f.where.end());
    return out;
  }

  Formula end() const {
    std::string x = "x";
    if (model_.stack == StackKind::transformer) {
      const bool sum = has_final_norm(model_) && placement_row(model_.placement).second_stream;
      if (has_final_norm(model_)) x = sum ? "x + " + norm("r") : norm("x");
      if (model_.tie_embeddings) return {(sum ? "(" + x + ")" : x) + "·Eᵀ", {"E the token embedding, tied"}};
    } else {
      x = norm(x, has_final_norm(model_));
      if (!is_post()) x = act(x);
      if (model_.stack == StackKind::resnet) x = named("mean", x);
    }
    Formula formula{named("head", x), {}};
    if (model_.stack == StackKind::resnet) formula.where.push_back("mean over the image");
    return formula;
  }

 private:
  bool is_post() const { return model_.placement == Placement::post; }

  std::string norm(const std::string& inside, bool present = true) const {
    return present ? named(norm_name(model_.norm), inside) : inside;
  }

  std::string act(const std::string& inside) const { return named(activation_name(model_.activation), inside); }

  void drop_out(Formula& f) const {
    if (model_.dropout == 0) return;
    f.text = named("Dropout", f.text);
    f.where.push_back("Dropout with p = " + number(model_.dropout));
  }

  static std::string scaled(double factor, const std::string& what) {
    return factor == 1 ? what : number(factor) + "·" + what;
  }

  /// skip + (factor of the branch)·f, the sign drawn out.
  std::string plus(const std::string& skip, const std::string& f) const { return sum(skip, "", f); }

  std::string sum(const std::string& skip, const std::string& gate, const std::string& f) const {
    const double factor = branch_factor(model_);
    return fmt::format("{} {} {}", skip, factor < 0 ? "−" : "+", with_factors(std::abs(factor), gate, f));
  }

  /// The constant, the warm-up and the learned gate before a branch.
  std::string with_factors(double constant, const std::string& gate, const std::string& f) const {
    std::string out = constant == 1 ? "" : number(constant) + "·";
    if (model_.branch_warmup > 0)
      out += model_.branch_warmup == 1 ? "min(s/l, 1)·" : fmt::format("min(s/({}·l), 1)·", model_.branch_warmup);
    return out + gate + f;
  }

  /// Under `sinusoid` vectors and matrices start as a wave, scalars as ever.
  bool starts_as_wave() const { return model_.initialization == Initialization::sinusoid; }

  /// "λ learned, starts at 0.1".
  std::string learned(const std::string& letter, const std::string& start) const {
    return letter + " learned" + (starts_as_wave() ? "" : ", starts at " + start);
  }

  /// The residual form: y from skip and branch.
  std::string joined(const std::string& skip, const std::string& f, std::vector<std::string>& where) const {
    const double factor = branch_factor(model_);
    const double gate = model_.residual_gate.value_or(initial_gate(model_.residual).value_or(0));
    std::string y;
    switch (model_.residual) {
      case Residual::add: y = plus(skip, f); break;
      case Residual::none: y = with_factors(factor, "", f); break;
      case Residual::scaled:
      case Residual::rezero:
        y = sum(skip, "a·", f);
        where.push_back("a learned, starts at " + number(gate));
        break;
      case Residual::layerscale:
        y = sum(skip, "λ⊙", f);
        where.push_back(learned("λ", number(gate)));
        break;
      case Residual::sqrt2: y = fmt::format("({})/√2", plus(skip, f)); break;
      case Residual::highway:
        y = fmt::format("{} + (1 − t)⊙{}", with_factors(factor, "t⊙", f), skip);
        where.push_back(fmt::format("t = σ(W·{} + b)", skip));
        where.push_back(starts_as_wave() ? "W and b learned" : "W and b learned, b starts at -2");
        break;
      case Residual::concat:
        y = fmt::format("[{}; {}]·Wᵀ", skip, with_factors(factor, "", f));
        where.push_back(learned("W", "[I I]"));
        break;
      case Residual::gate_literal: y = with_factors(factor, fmt::format("σ({})⊙", skip), f); break;
    }
    if (model_.branch_warmup > 0) where.push_back("s the update");
    return y;
  }

  Formula attention_branch(const SubLayerPlan& plan) const {
    const auto projected = [&](const char* name, bool qk) {
      const std::string value = fmt::format("{}(z)", name);
      if (plan.norm_query_key_value) return norm(value);
      return qk && model_.qk_norm ? named("LayerNorm", value) : value;
    };
    const std::string query = projected("q", true), key = projected("k", true);
    std::string y =
        fmt::format("softmax({}·{}ᵀ/√{})·{}", query, key, model_.width / model_.heads, projected("v", false));
    Formula out;
    out.where = {fmt::format("{} {}, {}", model_.heads, model_.heads == 1 ? "head" : "heads",
                             model_.causal ? "causal" : "not causal")};
    if (query != "q(z)") out.where.push_back(std::string(query.substr(0, query.find('('))) + " a head");
    if (plan.head_scale) {
      y = "h⊙" + y;
      out.where.push_back(learned("h", "1") + ", a number a head");
    }
    out.text = "Attention(z) = " + named("out", norm(y, plan.inner_norm));
    return out;
  }

  Formula ffn_branch(const SubLayerPlan& plan) const {
    return {"FeedForward(z) = " + named("out", norm(act("in(z)"), plan.inner_norm)), {}};
  }

  const ModelConfig& model_;
};

}  // namespace

std::string Formula::line() const {
  std::string out = text;
  for (std::size_t i = 0; i < where.size(); ++i) out += (i == 0 ? ", " : "; ") + where[i];
  return out;
}

StackFormulas stack_formulas(const ModelConfig& model) {
  const Writer writer(model);
  StackFormulas out{.start = writer.start(), .blocks = {}, .end = writer.end()};
  for (std::int64_t block = 1; block <= model.depth; ++block) {
    std::vector<SubLayerFormula> sublayers;
    if (model.stack == StackKind::transformer)
      for (const SubLayerKind kind : {SubLayerKind::attention, SubLayerKind::ffn})
        sublayers.push_back(writer.transformer_sublayer(block, kind));
    else
      sublayers.push_back(writer.feedforward_block(block));
    if (!out.blocks.empty() && out.blocks.back().sublayers == sublayers)
      out.blocks.back().last = block;
    else
      out.blocks.push_back({block, block, std::move(sublayers)});
  }
  return out;
}

std::string block_range(const BlockFormulas& blocks) {
  return blocks.first == blocks.last ? fmt::format("block {}", blocks.first)
                                     : fmt::format("blocks {}-{}", blocks.first, blocks.last);
}

}  // namespace gradflow
