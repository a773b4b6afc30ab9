#include "model/norm.h"

namespace gradflow {
namespace {

constexpr double batch_norm_momentum = 0.1;

/// x·rsqrt(mean(x²) + ε) over `dims` (Zhang and Sennrich 2019): no mean removed.
at::Tensor rms_normalized(const at::Tensor& x, at::IntArrayRef dims, double epsilon) {
  return x * at::rsqrt(x.square().mean(dims, /*keepdim=*/true) + epsilon);
}

at::Tensor centered(const at::Tensor& x, at::IntArrayRef dims) { return x - x.mean(dims, /*keepdim=*/true); }

}  // namespace

NormSite::NormSite(const ParameterStore& store, const std::string& prefix, Norm norm, double epsilon)
    : norm_(norm), epsilon_(epsilon) {
  if (norm == Norm::none) return;
  weight_ = store.parameter(prefix + ".weight");
  if (norm != Norm::rmsnorm) bias_ = store.parameter(prefix + ".bias");
  if (norm == Norm::dyt) alpha_ = store.parameter(prefix + ".alpha");
  if (norm == Norm::batchnorm) {
    running_mean_ = store.buffer(prefix + ".running_mean");
    running_var_ = store.buffer(prefix + ".running_var");
  }
}

at::Tensor NormSite::batch_norm(const at::Tensor& rows, const at::Tensor& real_rows, const Pass& pass) const {
  at::Tensor mean, variance;
  if (pass.training) {
    if (real_rows.defined()) {
      const at::Tensor share = (real_rows.to(rows.scalar_type()) / real_rows.sum()).unsqueeze(1);
      mean = (rows * share).sum(0);
      variance = ((rows - mean).square() * share).sum(0);
    } else {
      mean = rows.mean(0);
      variance = (rows - mean).square().mean(0);
    }
    if (pass.update_statistics) {
      const at::NoGradGuard no_grad;
      const at::Tensor count = real_rows.defined() ? real_rows.sum().to(rows.scalar_type())
                                                   : at::full({}, rows.size(0), rows.options().requires_grad(false));
      // A batch that overflowed must not spoil the statistics of a run that skips it.
      const at::Tensor finite = mean.isfinite().logical_and(variance.isfinite());
      const auto follow = [&](const at::Tensor& running, const at::Tensor& value) {
        running.copy_(at::where(finite, running * (1 - batch_norm_momentum) + value * batch_norm_momentum, running));
      };
      follow(running_mean_, mean.detach());
      follow(running_var_, variance.detach() * (count / (count - 1).clamp_min(1)));
    }
  } else {
    mean = running_mean_;
    variance = running_var_;
  }
  return (rows - mean) * at::rsqrt(variance + epsilon_) * weight_ + bias_;
}

at::Tensor NormSite::operator()(const at::Tensor& x, const Pass& pass) const {
  if (norm_ == Norm::none) return x;
  const at::Tensor in = x.scalar_type() == at::kBFloat16 ? x.to(at::kFloat) : x;
  at::Tensor y;
  switch (norm_) {
    case Norm::none: break;
    case Norm::layernorm: y = std::get<0>(at::native_layer_norm(in, {in.size(-1)}, weight_, bias_, epsilon_)); break;
    case Norm::rmsnorm: y = rms_normalized(in, {-1}, epsilon_) * weight_; break;
    case Norm::center: y = centered(in, {-1}) * weight_ + bias_; break;
    case Norm::dyt: y = at::tanh(alpha_ * in) * weight_ + bias_; break;
    case Norm::batchnorm: {
      at::Tensor real = pass.batch->real;  // [B, T]; per-head values are [B, heads, T, d_h]
      if (real.defined() && in.dim() == 4) real = real.unsqueeze(1).expand({in.size(0), in.size(1), in.size(2)});
      const bool padded = real.defined() && in.dim() >= 3;
      y = batch_norm(in.reshape({-1, in.size(-1)}), padded ? real.reshape({-1}) : at::Tensor(), pass).view(in.sizes());
      break;
    }
  }
  return y.to(x.scalar_type());
}

at::Tensor NormSite::image(const at::Tensor& x, const Pass& pass) const {
  if (norm_ == Norm::none) return x;
  const at::Tensor in = x.scalar_type() == at::kBFloat16 ? x.to(at::kFloat) : x;
  const auto per_channel = [](const at::Tensor& gain) { return gain.view({1, -1, 1, 1}); };
  const std::array<std::int64_t, 3> sample{1, 2, 3};
  at::Tensor y;
  switch (norm_) {
    case Norm::none: break;
    case Norm::layernorm: {
      const at::Tensor difference = centered(in, sample);
      y = rms_normalized(difference, sample, epsilon_) * per_channel(weight_) + per_channel(bias_);
      break;
    }
    case Norm::rmsnorm: y = rms_normalized(in, sample, epsilon_) * per_channel(weight_); break;
    case Norm::center: y = centered(in, sample) * per_channel(weight_) + per_channel(bias_); break;
    case Norm::dyt: y = at::tanh(alpha_ * in) * per_channel(weight_) + per_channel(bias_); break;
    case Norm::batchnorm: {
      const at::Tensor rows = in.permute({0, 2, 3, 1}).reshape({-1, in.size(1)});
      y = batch_norm(rows, {}, pass)
              .view({in.size(0), in.size(2), in.size(3), in.size(1)})
              .permute({0, 3, 1, 2})
              .contiguous();
      break;
    }
  }
  return y.to(x.scalar_type());
}

}  // namespace gradflow
