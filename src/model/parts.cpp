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
