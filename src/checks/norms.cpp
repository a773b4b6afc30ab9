#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "checks/checks.h"
#include "model/norm.h"

namespace gradflow {
namespace {

constexpr std::int64_t sequences = 8, positions = 16, features = 64;
constexpr double epsilon = 1e-12;  // so small that identities hold to rounding

/// A norm site with gains 1 and shifts 0, in double.
class OneNorm {
 public:
  explicit OneNorm(Norm norm) : store_(layout(norm), 1, at::kDouble, at::kCPU), site_(store_, "n", norm, epsilon) {}

  at::Tensor training(const at::Tensor& x, const at::Tensor& real = {}) const {
    const Batch batch{.real = real};
    return site_(x, {.batch = &batch, .training = true});
  }
  at::Tensor evaluation(const at::Tensor& x) const {
    const Batch batch;
    return site_(x, {.batch = &batch, .training = false});
  }
  const ParameterStore& store() const { return store_; }

 private:
  static Layout layout(Norm norm) {
    SegmentSpec segment{.layer = 1, .sublayer = "ffn"};
    if (norm == Norm::none) return {{segment}};
    if (norm == Norm::dyt) segment.parameters.push_back({"n.alpha", {}, {.offset = 0.5}});
    segment.parameters.push_back({"n.weight", {features}, {.offset = 1}});
    if (norm != Norm::rmsnorm) segment.parameters.push_back({"n.bias", {features}, {}});
    if (norm == Norm::batchnorm) segment.buffers = {{"n.running_mean", features, 0}, {"n.running_var", features, 1}};
    return {{segment}};
  }

  ParameterStore store_;
  NormSite site_;
};

Norm norm_of(const OperatorCheck& check) { return *choice_named<Norm>(check.word("norm")); }

at::Tensor stream(std::uint64_t seed, const std::string& name) {
  return normals({sequences, positions, features}, seed, name);
}

/// The other sequences and the later positions of the first one are drawn anew.
double batch_dependence(Norm norm, std::uint64_t seed) {
  const at::Tensor x = stream(seed, "input");
  at::Tensor other = stream(seed, "other") * 3 + 1;
  const std::int64_t kept = positions / 2;
  other[0].slice(0, 0, kept).copy_(x[0].slice(0, 0, kept));
  const OneNorm site(norm);
  return relative_difference(site.training(other)[0].slice(0, 0, kept), site.training(x)[0].slice(0, 0, kept));
}

/// d(output at a position)/d(input at later positions), by autograd.
double future_leak(Norm norm, std::uint64_t seed) {
  at::Tensor x = stream(seed, "input").set_requires_grad(true);
  const at::AutoGradMode with_graph(true);
  const std::int64_t position = positions / 2;
  const at::Tensor weights = normals({features}, seed, "direction");
  const at::Tensor output = (OneNorm(norm).training(x)[0][position] * weights).sum();
  output.backward();
  return x.grad()[0].slice(0, position + 1).abs().max().item<double>();
}

double evaluation_batch(Norm norm, std::uint64_t seed) {
  const OneNorm site(norm);
  site.training(stream(seed, "training") * 2 + 1);  // running statistics of some batch
  const at::Tensor rows = normals({32, 1, features}, seed, "rows");
  const at::Tensor together = site.evaluation(rows);
  double largest = 0;
  for (std::int64_t row = 0; row < rows.size(0); ++row) {
    const at::Tensor alone = site.evaluation(rows.slice(0, row, row + 1));
    largest = std::max(largest, (alone - together.slice(0, row, row + 1)).abs().max().item<double>());
  }
  return largest;
}

/// Zero positions appended to each sequence until they are the given share of all.
double padding(const OperatorCheck& check, std::uint64_t seed) {
  const double share = check.number("share");
  const at::Tensor x = stream(seed, "input") + 1;
  const auto added = static_cast<std::int64_t>(std::round(static_cast<double>(positions) * share / (1 - share)));
  const at::Tensor padded = at::cat({x, at::zeros({sequences, added, features}, at::kDouble)}, 1);
  const at::Tensor real =
      at::cat({at::ones({sequences, positions}, at::kBool), at::zeros({sequences, added}, at::kBool)}, 1);
  const OneNorm site(norm_of(check));
  const at::Tensor output = site.training(padded, check.word("padding") == "masked" ? real : at::Tensor());
  return relative_difference(output.slice(1, 0, positions), site.training(x));
}

/// Along a random direction of the input; the output weighted at random.
double gradient_error(Norm norm, std::uint64_t seed) {
  const OneNorm site(norm);
  const at::Tensor weights = stream(seed, "weights"), start = stream(seed, "input") + 0.5;
  at::Tensor direction = stream(seed, "direction");
  direction = direction / direction.norm();
  const auto value = [&](const at::Tensor& x) { return (site.training(x) * weights).sum(); };
  at::Tensor x = start.clone().set_requires_grad(true);
  {
    const at::AutoGradMode with_graph(true);
    value(x).backward();
  }
  const double derivative = (x.grad() * direction).sum().item<double>();
  constexpr double step = 1e-3;
  const auto slope = [&](double h) {
    return ((value(start + h * direction) - value(start - h * direction)) / (2 * h)).item<double>();
  };
  const double difference = (4 * slope(step) - slope(2 * step)) / 3;
  return std::abs(derivative - difference) / std::abs(difference);
}

/// Over 4000 draws of `batch` numbers.
double variance_spread(const OperatorCheck& check, std::uint64_t seed) {
  const std::int64_t batch = check.count("batch");
  const at::Tensor variances = normals({4000, batch}, seed, "draws").var(1, /*unbiased=*/true);
  const double spread = (variances.std(/*unbiased=*/true) / variances.mean()).item<double>();
  return spread / std::sqrt(2.0 / static_cast<double>(batch - 1));
}

double batch_of_one(std::uint64_t seed) {
  const OneNorm site(Norm::batchnorm);
  const at::Tensor shift = normals({features}, seed, "shift");
  {
    const at::NoGradGuard no_grad;
    site.store().parameter("n.bias").copy_(shift);
  }
  return (site.training(normals({1, 1, features}, seed, "row")) - shift).abs().max().item<double>();
}

/// Features of mean `mean` and biased variance 1, exactly.
at::Tensor with_mean(double mean, std::uint64_t seed) {
  const at::Tensor x = stream(seed, "input");
  const at::Tensor centred = x - x.mean(-1, true);
  return centred / centred.square().mean(-1, true).sqrt() + mean;
}

double rms_identity(const OperatorCheck& check, std::uint64_t seed) {
  const at::Tensor x = with_mean(check.number("mean"), seed);
  const at::Tensor mean_square = x.square().mean(-1), mean = x.mean(-1);
  const at::Tensor variance = (x - mean.unsqueeze(-1)).square().mean(-1);
  return relative_difference(variance + (check.word("form") == "mean_squared" ? mean.square() : mean_square),
                             mean_square);
}

double norm_distance(const OperatorCheck& check, std::uint64_t seed) {
  const double mean = check.number("mean");
  const at::Tensor x = with_mean(mean, seed);
  const double measured = relative_difference(OneNorm(Norm::rmsnorm).training(x), OneNorm(Norm::layernorm).training(x));
  // With c = 1/√(1 + mean²): RMSNorm gives c·(z + mean), so the square is (1 − c)² + 1 − c² = 2 − 2c.
  return measured / std::sqrt(2 - 2 / std::sqrt(1 + mean * mean));
}

double scaled_sum(std::uint64_t seed) {
  const at::Tensor x = stream(seed, "skip"), f = stream(seed, "branch");
  const OneNorm site(Norm::layernorm);
  return relative_difference(site.training((x + f) / std::sqrt(2.0)), site.training(x + f));
}

double uniform_attention(const OperatorCheck& check, std::uint64_t seed) {
  const std::int64_t tokens = check.count("tokens");
  const at::Tensor values = normals({256, tokens, features}, seed, "values");
  const at::Tensor mixed = values.mean(1);  // every position attends to all alike
  return (mixed.var() / values.var()).item<double>() * static_cast<double>(tokens);
}

}  // namespace

double norm_check(const OperatorCheck& check, std::uint64_t seed) {
  const at::NoGradGuard no_grad;
  switch (check.row->kind) {
    case OperatorKind::norm_shift: {
      const at::Tensor x = stream(seed, "input");
      const OneNorm site(norm_of(check));
      return relative_difference(site.training(x + check.number("shift")), site.training(x));
    }
    case OperatorKind::norm_scale: {
      const at::Tensor x = stream(seed, "input");
      const OneNorm site(norm_of(check));
      return relative_difference(site.training(x * check.number("factor")), site.training(x));
    }
    case OperatorKind::norm_batch_dependence: return batch_dependence(norm_of(check), seed);
    case OperatorKind::norm_future_leak: return future_leak(norm_of(check), seed);
    case OperatorKind::norm_evaluation_batch: return evaluation_batch(norm_of(check), seed);
    case OperatorKind::norm_padding: return padding(check, seed);
    case OperatorKind::norm_gradient: return gradient_error(norm_of(check), seed);
    case OperatorKind::batch_variance: return variance_spread(check, seed);
    case OperatorKind::batch_of_one: return batch_of_one(seed);
    case OperatorKind::rms_identity: return rms_identity(check, seed);
    case OperatorKind::norm_distance: return norm_distance(check, seed);
    case OperatorKind::scaled_sum: return scaled_sum(seed);
    case OperatorKind::uniform_attention: return uniform_attention(check, seed);
    default: throw std::logic_error("no check of a norm");
  }
}

}  // namespace gradflow
