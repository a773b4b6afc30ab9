#include "measure/on_demand.h"

#include <cmath>
#include <string>
#include <utility>

#include "config/placements.h"
#include "core/interrupt.h"
#include "core/philox.h"
#include "measure/eigenvalue.h"
#include "measure/rows.h"

namespace gradflow {
namespace {

constexpr int gain_vectors = 8;
constexpr int trace_vectors = 16;
constexpr double noise_amplitude = 0.01;  // 40 dB

Config reference_config(Config config) {
  config.compute.dtype = Dtype::float64;
  config.compute.backend = Backend::aten;
  config.compute.recompute = false;
  config.model.dropout = 0;
  return config;
}

Batch in_double(Batch batch) {
  if (batch.inputs.is_floating_point()) batch.inputs = batch.inputs.to(at::kDouble);
  if (batch.targets.is_floating_point()) batch.targets = batch.targets.to(at::kDouble);
  return batch;
}

/// LibTorch's fused attention cannot be differentiated twice; while this lives, attention is composed of operators
/// that can.
class ComposedAttention {
 public:
  ComposedAttention()
      : flash_(at::globalContext().userEnabledFlashSDP()),
        memory_efficient_(at::globalContext().userEnabledMemEfficientSDP()),
        cudnn_(at::globalContext().userEnabledCuDNNSDP()) {
    set(false, false, false);
  }
  ~ComposedAttention() { set(flash_, memory_efficient_, cudnn_); }
  ComposedAttention(const ComposedAttention&) = delete;
  ComposedAttention& operator=(const ComposedAttention&) = delete;

 private:
  static void set(bool flash, bool memory_efficient, bool cudnn) {
    at::globalContext().setSDPUseFlash(flash);
    at::globalContext().setSDPUseMemEfficient(memory_efficient);
    at::globalContext().setSDPUseCuDNN(cudnn);
  }
  bool flash_, memory_efficient_, cudnn_;
};

class LogitsWatcher final : public Watcher {
 public:
  void forward_done(std::size_t, const Stream&, const Stream&, const Inside& inside, const Batch&) override {
    if (inside.logits.defined()) logits = inside.logits;
  }
  void gradient_arrived(std::size_t, const Stream&) override {}
  at::Tensor logits;
};

/// The rows of x (tokens or samples) that are not padding.
at::Tensor real_rows(const at::Tensor& x, const at::Tensor& real) {
  const at::Tensor rows = as_rows(x);
  return real.defined() ? rows.index({real.reshape({-1})}) : rows;
}

/// x with padding set to zero.
at::Tensor without_padding(const at::Tensor& x, const at::Tensor& real) {
  return real.defined() ? x * real.unsqueeze(-1) : x;
}

/// x [B, T, d] without each sequence's mean over its real tokens.
at::Tensor without_token_mean(const at::Tensor& x, const at::Tensor& real) {
  const at::Tensor kept = without_padding(x, real);
  const at::Tensor count = real.defined() ? real.sum(1).view({-1, 1, 1}).to(at::kDouble)
                                          : at::full({1, 1, 1}, x.size(1), x.options().requires_grad(false));
  return without_padding(kept - kept.sum(1, /*keepdim=*/true) / count, real);
}

double decibels(const at::Tensor& signal, const at::Tensor& noise) {
  return 10 * std::log10(signal.square().sum().item<double>() / noise.square().sum().item<double>());
}

/// ‖YᵀX‖²/(‖XᵀX‖·‖YᵀY‖) with centred columns, from whichever of features and rows is fewer.
double linear_cka(const at::Tensor& x, const at::Tensor& y) {
  const at::Tensor a = x - x.mean(0), b = y - y.mean(0);
  const auto gram = [&](const at::Tensor& m) { return m.matmul(m.t()); };
  if (a.size(0) <= std::max(a.size(1), b.size(1))) {
    const at::Tensor k = gram(a), l = gram(b);
    return ((k * l).sum() / (k.norm() * l.norm())).item<double>();
  }
  return (b.t().matmul(a).square().sum() / (gram(a.t()).norm() * gram(b.t()).norm())).item<double>();
}

}  // namespace

OnDemandMeter::OnDemandMeter(const Config& config, Batch batch, at::Device device,
                             const std::set<std::string_view>& wanted)
    : config_(reference_config(config)),
      batch_(on_device(in_double(std::move(batch)), device)),
      device_(device),
      wanted_(wanted),
      stack_(config_, device) {
  const std::vector<SegmentSpec>& segments = stack_.layout().segments;
  for (std::size_t s = 1; s < segments.size(); ++s)
    if (segments[s].layer != segments[s - 1].layer) block_ends_.push_back(s);
  if (wants("output_change")) {
    // The run's own initial weights, rounded to its dtype.
    take_weights(ParameterStore(stack_.layout(), static_cast<std::uint64_t>(config.seed),
                                config.compute.dtype == Dtype::float64 ? at::kDouble : at::kFloat, device));
    initial_logits_ = logits(pass(0));
  }
}

Pass OnDemandMeter::pass(std::int64_t step) const {
  return {.batch = &batch_, .step = std::max<std::int64_t>(step, 1), .keep = false, .update_statistics = false};
}

void OnDemandMeter::take_weights(const ParameterStore& store) {
  const at::NoGradGuard no_grad;
  for (const ParameterStore::Entry& entry : store.entries())
    stack_.store().parameter(entry.name).copy_(store.parameter(entry.name));
}

at::Tensor OnDemandMeter::logits(const Pass& pass) {
  LogitsWatcher watcher;
  Watcher* const watchers[] = {&watcher};
  stack_.forward(pass, watchers);
  return watcher.logits;
}

std::vector<Stream> OnDemandMeter::streams_behind_blocks(Stream stream, const Pass& pass) {
  std::vector<Stream> streams{stream};
  for (std::size_t l = 1; l < block_ends_.size(); ++l)
    streams.push_back(stack_.forward_in_graph(block_ends_[l - 1], block_ends_[l], streams.back(), pass));
  return streams;
}

at::Tensor OnDemandMeter::random_signs(std::string_view name, std::int64_t count) const {
  const RandomStream random(static_cast<std::uint64_t>(config_.seed), name);
  const at::Tensor signs = at::empty({count}, at::kDouble);
  double* values = signs.data_ptr<double>();
  for (std::int64_t i = 0; i < count; ++i) values[i] = (random.bits(static_cast<std::uint64_t>(i)) & 1) == 0 ? -1 : 1;
  return signs.to(device_);
}

std::vector<StackNumber> OnDemandMeter::measure(const ParameterStore& store, std::int64_t step,
                                                const std::optional<SecondMoment>& second_moment) {
  take_weights(store);
  const Pass pass = this->pass(step);
  std::vector<StackNumber> numbers;
  if (wants("output_change")) {
    const at::Tensor change = real_rows(logits(pass) - initial_logits_, batch_.real);
    numbers.push_back({{}, "output_change", change.square().mean().sqrt().item<double>()});
  }
  if (wants("jacobian")) jacobian(pass, numbers);
  if (wants("hessian")) hessian(pass, second_moment, numbers);
  if (wants("snr") || wants("snr_raw")) noise(pass, numbers);
  if (wants("lesion")) lesion(pass, numbers);
  if (wants("cka")) similarity(pass, numbers);
  return numbers;
}

void OnDemandMeter::jacobian(const Pass& pass, std::vector<StackNumber>& numbers) {
  const ComposedAttention composed;
  const at::AutoGradMode grad_mode(true);
  const at::Tensor start = stack_.forward_in_graph(0, block_ends_.front(), {}, pass).x.detach();
  const at::Tensor x = start.clone().requires_grad_(true);
  const at::Tensor y = stack_.forward_in_graph(block_ends_.front(), block_ends_.back(), {x, {}}, pass).x;
  // The product with Jᵀ is linear in its vector; its derivative with respect to that vector is J.
  const at::Tensor dummy = at::zeros_like(y).requires_grad_(true);
  const at::Tensor transposed =
      torch::autograd::grad({y}, {x}, {dummy}, /*retain_graph=*/true, /*create_graph=*/true)[0];
  const auto forward = [&](const at::Tensor& v) {
    give_up_if_overdue();
    const at::Tensor product =
        torch::autograd::grad({transposed}, {dummy}, {without_padding(v.view_as(x), batch_.real)},
                              /*retain_graph=*/true)[0];
    return without_padding(product, batch_.real);
  };
  const auto backward = [&](const at::Tensor& w) {
    give_up_if_overdue();
    const at::Tensor product = torch::autograd::grad({y}, {x}, {w}, /*retain_graph=*/true)[0];
    return without_padding(product, batch_.real).reshape({-1});
  };
  const at::Tensor first = without_padding(random_signs("jacobian", x.numel()).view_as(x), batch_.real);
  const double square =
      largest_eigenvalue([&](const at::Tensor& v) { return backward(forward(v)); }, first.reshape({-1}));
  double squares = 0;
  for (int i = 0; i < gain_vectors; ++i)
    squares += forward(random_signs("jacobian/" + std::to_string(i), x.numel())).square().sum().item<double>();
  const auto outputs = static_cast<double>(real_rows(y.detach(), batch_.real).numel());
  numbers.push_back({{}, "jacobian_sigma_max", std::sqrt(square)});
  numbers.push_back({{}, "jacobian_rms_gain", std::sqrt(squares / gain_vectors / outputs)});
}

void OnDemandMeter::hessian(const Pass& pass, const std::optional<SecondMoment>& second_moment,
                            std::vector<StackNumber>& numbers) {
  const ComposedAttention composed;
  const at::AutoGradMode grad_mode(true);
  const at::Tensor loss = stack_.forward_in_graph(0, stack_.segment_count(), {}, pass).x;
  const std::vector<ParameterStore::Entry>& entries = stack_.store().entries();
  std::vector<at::Tensor> parameters;
  std::int64_t count = 0;
  for (const ParameterStore::Entry& entry : entries) {
    parameters.push_back(stack_.store().parameter(entry.name));
    count += entry.size;
  }
  const std::vector<at::Tensor> gradients = torch::autograd::grad({loss}, parameters, {}, /*retain_graph=*/true,
                                                                  /*create_graph=*/true, /*allow_unused=*/true);
  const auto flat = [&](const std::vector<at::Tensor>& tensors) {
    std::vector<at::Tensor> pieces;
    for (std::size_t p = 0; p < tensors.size(); ++p)
      pieces.push_back(tensors[p].defined()
                           ? tensors[p].reshape({-1})
                           : at::zeros({entries[p].size}, parameters[p].options().requires_grad(false)));
    return at::cat(pieces);
  };
  const at::Tensor gradient = flat(gradients);
  const auto product = [&](const at::Tensor& v) {
    give_up_if_overdue();
    return flat(torch::autograd::grad({gradient.dot(v)}, parameters, {}, /*retain_graph=*/true, /*create_graph=*/false,
                                      /*allow_unused=*/true))
        .detach();
  };
  const at::Tensor first = random_signs("hessian", count);
  numbers.push_back({{}, "hessian_lambda_max", largest_eigenvalue(product, first)});
  double trace = 0;
  for (int i = 0; i < trace_vectors; ++i) {
    const at::Tensor signs = random_signs("hessian/" + std::to_string(i), count);
    trace += signs.dot(product(signs)).item<double>();
  }
  numbers.push_back({{}, "hessian_trace", trace / trace_vectors});
  if (!second_moment || second_moment->updates == 0) return;
  std::vector<at::Tensor> moments;
  for (const at::Tensor& moment : second_moment->of_entries) moments.push_back(moment.to(at::kDouble).reshape({-1}));
  const double correction = 1 - std::pow(config_.train.betas.at(1), static_cast<double>(second_moment->updates));
  const at::Tensor scale = ((at::cat(moments) / correction).sqrt() + config_.train.epsilon).rsqrt();
  numbers.push_back({{},
                     "hessian_preconditioned_lambda_max",
                     largest_eigenvalue([&](const at::Tensor& v) { return scale * product(scale * v); }, first)});
}

void OnDemandMeter::noise(const Pass& pass, std::vector<StackNumber>& numbers) {
  const at::NoGradGuard no_grad;
  const at::Tensor start = stack_.forward_in_graph(0, block_ends_.front(), {}, pass).x;
  const RandomStream random(static_cast<std::uint64_t>(config_.seed), "snr");
  at::Tensor white = at::empty({start.numel()}, at::kDouble);
  for (std::int64_t i = 0; i < white.numel(); ++i)
    white.data_ptr<double>()[i] = random.normal(static_cast<std::uint64_t>(i));
  const double rms = real_rows(start, batch_.real).square().mean().sqrt().item<double>();
  white = white.to(device_).view_as(start) * (noise_amplitude * rms);
  const std::vector<Stream> clean = streams_behind_blocks({start, {}}, pass);
  const std::vector<Stream> noisy = streams_behind_blocks({start + white, {}}, pass);
  for (std::size_t l = 1; l < clean.size(); ++l) {
    const at::Tensor signal = clean[l].x, difference = noisy[l].x - clean[l].x;
    const auto layer = static_cast<std::int64_t>(l);
    if (wants("snr") && signal.dim() == 3)
      numbers.push_back(
          {layer, "snr",
           decibels(without_token_mean(signal, batch_.real), without_token_mean(difference, batch_.real))});
    if (wants("snr_raw"))
      numbers.push_back(
          {layer, "snr_raw", decibels(without_padding(signal, batch_.real), without_padding(difference, batch_.real))});
  }
}

void OnDemandMeter::lesion(const Pass& pass, std::vector<StackNumber>& numbers) {
  const at::NoGradGuard no_grad;
  const auto loss = [&](const Stream& stream, std::size_t from) {
    return stack_.forward_in_graph(from, stack_.segment_count(), stream, pass).x.item<double>();
  };
  const std::vector<Stream> streams =
      streams_behind_blocks(stack_.forward_in_graph(0, block_ends_.front(), {}, pass), pass);
  numbers.push_back({{}, "lesion", loss(streams.back(), block_ends_.back())});
  for (std::size_t l = 1; l < streams.size(); ++l) {
    // A block that changes the stream's shape cannot be left out.
    if (streams[l].x.sizes() != streams[l - 1].x.sizes()) continue;
    Stream around = streams[l - 1];
    if (placement_row(config_.model.placement).second_stream && !around.second.defined()) around.second = around.x;
    numbers.push_back({static_cast<std::int64_t>(l), "lesion", loss(around, block_ends_[l])});
  }
}

void OnDemandMeter::similarity(const Pass& pass, std::vector<StackNumber>& numbers) {
  const at::NoGradGuard no_grad;
  const std::vector<Stream> streams =
      streams_behind_blocks(stack_.forward_in_graph(0, block_ends_.front(), {}, pass), pass);
  const at::Tensor last = real_rows(streams.back().x, batch_.real);
  for (std::size_t l = 1; l < streams.size(); ++l) {
    give_up_if_overdue();
    numbers.push_back({static_cast<std::int64_t>(l), "cka", linear_cka(real_rows(streams[l].x, batch_.real), last)});
  }
}

}  // namespace gradflow
