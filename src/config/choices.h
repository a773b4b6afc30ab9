#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace gradflow {

// Every key whose value is one of a few words. The names stand beside the enumerators, in the same order; parsing,
// printing, help and the JSON Schema read them from here.

enum class StackKind { transformer, mlp, resnet };
inline constexpr std::array<std::string_view, 3> names_of(StackKind) { return {"transformer", "mlp", "resnet"}; }

enum class Activation { gelu, relu, tanh, identity };
inline constexpr std::array<std::string_view, 4> names_of(Activation) { return {"gelu", "relu", "tanh", "identity"}; }

enum class Norm { none, layernorm, rmsnorm, center, batchnorm, dyt };
inline constexpr std::array<std::string_view, 6> names_of(Norm) {
  return {"none", "layernorm", "rmsnorm", "center", "batchnorm", "dyt"};
}

enum class Placement {
  none,
  pre,
  post,
  deepnorm,
  sandwich,
  peri,
  reordered,
  lns,
  sub_ln,
  normformer,
  resi_dual,
  b2t,
  admin,
  keel,
  hybrid_norm,
  mix_ln
};
inline constexpr std::array<std::string_view, 16> names_of(Placement) {
  return {"none",   "pre",        "post",      "deepnorm", "sandwich", "peri", "reordered",   "lns",
          "sub_ln", "normformer", "resi_dual", "b2t",      "admin",    "keel", "hybrid_norm", "mix_ln"};
}

enum class Residual { add, none, scaled, rezero, sqrt2, layerscale, highway, concat, gate_literal };
inline constexpr std::array<std::string_view, 9> names_of(Residual) {
  return {"add", "none", "scaled", "rezero", "sqrt2", "layerscale", "highway", "concat", "gate_literal"};
}

enum class Initialization {
  xavier_normal,
  xavier_uniform,
  he_normal,
  normal,
  gpt2,
  orthogonal,
  ds_init,
  fixup,
  t_fixup,
  mitchell,
  sinusoid
};
inline constexpr std::array<std::string_view, 11> names_of(Initialization) {
  return {"xavier_normal", "xavier_uniform", "he_normal", "normal",   "gpt2",    "orthogonal",
          "ds_init",       "fixup",          "t_fixup",   "mitchell", "sinusoid"};
}

enum class Positions { learned, sinusoidal, none };
inline constexpr std::array<std::string_view, 3> names_of(Positions) { return {"learned", "sinusoidal", "none"}; }

enum class Task {
  markov,
  copy,
  reverse,
  sort,
  majority,
  modular,
  random,
  quadratic,
  text,
  teacher,
  clusters,
  identity,
  cifar10
};
inline constexpr std::array<std::string_view, 13> names_of(Task) {
  return {"markov",    "copy", "reverse", "sort",     "majority", "modular", "random",
          "quadratic", "text", "teacher", "clusters", "identity", "cifar10"};
}

enum class Tokenizer { byte, character };
inline constexpr std::array<std::string_view, 2> names_of(Tokenizer) { return {"byte", "character"}; }

enum class OptimizerKind { adamw, adam, sgd };
inline constexpr std::array<std::string_view, 3> names_of(OptimizerKind) { return {"adamw", "adam", "sgd"}; }

enum class Decay { constant, linear, cosine, inverse_sqrt };
inline constexpr std::array<std::string_view, 4> names_of(Decay) {
  return {"constant", "linear", "cosine", "inverse_sqrt"};
}

enum class OnNonfinite { stop, skip, proceed };
inline constexpr std::array<std::string_view, 3> names_of(OnNonfinite) { return {"stop", "skip", "continue"}; }

enum class Dtype { float32, float64, bfloat16 };
inline constexpr std::array<std::string_view, 3> names_of(Dtype) { return {"float32", "float64", "bfloat16"}; }

enum class Backend { automatic, aten, fused };
inline constexpr std::array<std::string_view, 3> names_of(Backend) { return {"auto", "aten", "fused"}; }

template <class Choice>
constexpr std::string_view name_of(Choice choice) {
  return names_of(Choice{})[static_cast<std::size_t>(choice)];
}

template <class Choice>
constexpr std::optional<Choice> choice_named(std::string_view name) {
  const auto names = names_of(Choice{});
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return static_cast<Choice>(i);
  return std::nullopt;
}

}  // namespace gradflow
