#include "model/parts.h"

#include <numbers>
#include <utility>

#include "core/philox.h"

namespace gradflow {

at::ScalarType activation_dtype(Dtype dtype) {
  switch (dtype) {
    case Dtype::float32: return at::kFloat;
    case Dtype::float64: return at::kDouble;
    case Dtype::bfloat16: return at::kBFloat16;
  }
  return at::kFloat;
}

Linear::Linear(const ParameterStore& store, const std::string& prefix) : weight_(store.parameter(prefix + ".weight")) {
  if (store.has(prefix + ".bias")) bias_ = store.parameter(prefix + ".bias");
}

at::Tensor Linear::operator()(const at::Tensor& x) const {
  const at::ScalarType dtype = x.scalar_type();
  return at::linear(x, weight_.to(dtype), bias_.defined() ? std::optional(bias_.to(dtype)) : std::nullopt);
}

namespace {

/// The parameters as one leaf, stacked along their first dimension, with the matching view of the gradients; undefined
/// where they do not lie side by side.
at::Tensor joined(const ParameterStore& store, const std::vector<std::string>& names) {
  const at::Tensor first = store.parameter(names.front());
  std::int64_t end = first.storage_offset();
  for (const std::string& name : names) {
    const at::Tensor parameter = store.parameter(name);
    if (parameter.storage_offset() != end) return {};
    end += parameter.numel();
  }
  std::vector<std::int64_t> sizes = first.sizes().vec();
  sizes[0] *= static_cast<std::int64_t>(names.size());
  const auto all = [&](const at::Tensor& tensor) {
    return tensor.as_strided(sizes, tensor.strides(), tensor.storage_offset());
  };
  at::Tensor leaf = all(first.detach());
  leaf.requires_grad_(true);
  leaf.mutable_grad() = all(first.grad());
  return leaf;
}

}  // namespace

JoinedLinear::JoinedLinear(const ParameterStore& store, const std::vector<std::string>& prefixes)
    : maps_(static_cast<std::int64_t>(prefixes.size())) {
  std::vector<std::string> weights, biases;
  for (const std::string& prefix : prefixes) {
    weights.push_back(prefix + ".weight");
    if (store.has(prefix + ".bias")) biases.push_back(prefix + ".bias");
  }
  if (!biases.empty()) bias_ = joined(store, biases);
  if (biases.empty() || bias_.defined()) weight_ = joined(store, weights);
}

std::vector<at::Tensor> JoinedLinear::operator()(const at::Tensor& x) const {
  const at::ScalarType dtype = x.scalar_type();
  const at::Tensor y =
      at::linear(x, weight_.to(dtype), bias_.defined() ? std::optional(bias_.to(dtype)) : std::nullopt);
  return y.chunk(maps_, -1);
}

at::Tensor activate(const at::Tensor& x, Activation activation) {
  switch (activation) {
    case Activation::gelu: return at::gelu(x);
    case Activation::relu: return at::relu(x);
    case Activation::tanh: return at::tanh(x);
    case Activation::identity: return x;
  }
  return x;
}

Dropout::Dropout(double probability, std::uint64_t seed, std::string site, std::int64_t accumulation)
    : probability_(probability), seed_(seed), site_(std::move(site)), accumulation_(accumulation) {}

at::Tensor Dropout::operator()(const at::Tensor& x, const Pass& pass) const {
  if (probability_ == 0 || !pass.training) return x;
  const RandomStream stream(seed_, "dropout/" + site_);
  at::Generator generator = at::globalContext().defaultGenerator(x.device()).clone();
  generator.set_current_seed(stream.bits(static_cast<std::uint64_t>((pass.step - 1) * accumulation_ + pass.micro)));
  const double kept = 1 - probability_;
  const at::Tensor mask = at::empty_like(x, x.options().requires_grad(false)).bernoulli_(kept, generator);
  return x * mask / kept;
}

ResidualForm::ResidualForm(const ParameterStore& store, const std::string& prefix, Residual form) : form_(form) {
  switch (form) {
    case Residual::scaled:
    case Residual::rezero:
    case Residual::layerscale: scale_ = store.parameter(prefix + ".scale"); break;
    case Residual::highway: gate_ = Linear(store, prefix + ".gate"); break;
    case Residual::concat: mix_ = store.parameter(prefix + ".mix.weight"); break;
    case Residual::add:
    case Residual::none:
    case Residual::sqrt2:
    case Residual::gate_literal: break;
  }
}

ResidualForm::Sum ResidualForm::operator()(const at::Tensor& skip, const at::Tensor& f) const {
  const auto sum = [](const at::Tensor& kept, const at::Tensor& branch) { return Sum{kept + branch, branch, kept}; };
  switch (form_) {
    case Residual::add: return sum(skip, f);
    case Residual::none: return {f, f, {}};
    case Residual::scaled:
    case Residual::rezero:
    case Residual::layerscale: return sum(skip, scale_.to(f.scalar_type()) * f);
    case Residual::sqrt2: return sum(skip / std::numbers::sqrt2, f / std::numbers::sqrt2);
    case Residual::highway: {
      const at::Tensor t = at::sigmoid(gate_(skip));
      return sum((1 - t) * skip, t * f);
    }
    case Residual::concat: {
      const std::int64_t d = f.size(-1);
      const at::Tensor mix = mix_.to(f.scalar_type());
      return sum(at::linear(skip, mix.narrow(1, 0, d)), at::linear(f, mix.narrow(1, d, d)));
    }
    case Residual::gate_literal: {
      const at::Tensor y = at::sigmoid(skip) * f;
      return {y, y, {}};
    }
  }
  return sum(skip, f);
}

}  // namespace gradflow
