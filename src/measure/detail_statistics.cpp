#include "measure/detail_statistics.h"

#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "config/placements.h"
#include "measure/rows.h"

namespace gradflow {
namespace {

constexpr std::int64_t numbers_a_note = 6;

at::Tensor in_double(const at::Tensor& x) { return x.to(at::kDouble); }

/// 1 for each row that counts, 0 for padding; [rows] float64. `real` [B, T] may be undefined.
at::Tensor counted_rows(const at::Tensor& real, const at::Tensor& rows) {
  const at::TensorOptions options = rows.options().dtype(at::kDouble);
  if (!real.defined()) return at::ones({rows.size(0)}, options);
  return real.reshape({-1}).to(at::kDouble);
}

/// x as rows in double, with padding set to zero so that nothing in it (nan) can enter a sum.
at::Tensor real_rows(const at::Tensor& x, const at::Tensor& counted) {
  const at::Tensor rows = in_double(as_rows(x));
  return at::where(counted.unsqueeze(1) != 0, rows, at::zeros({}, rows.options()));
}

/// {Σ, count} of a value for each row, over the rows that count and have one.
std::vector<at::Tensor> mean_note(const at::Tensor& values, const at::Tensor& counted, const at::Tensor& exists) {
  const at::Tensor counts = (counted != 0).logical_and(exists);
  return {at::where(counts, values, at::zeros({}, values.options())).sum(), counts.sum()};
}

/// {count, mean, Σ (v − mean)²} of values [rows] or [rows, features], over the rows that count.
std::vector<at::Tensor> spread_note(const at::Tensor& values, const at::Tensor& counted) {
  const at::Tensor weights = values.dim() == 2 ? counted.unsqueeze(1).expand_as(values) : counted;
  const at::Tensor count = weights.sum();
  const at::Tensor mean = (values * weights).sum() / count.clamp_min(1);
  return {count, mean, ((values - mean).square() * weights).sum()};
}

/// The cosine of each pair of rows, kept within ±1, and whether both have a length.
std::pair<at::Tensor, at::Tensor> cosines(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor lengths = a.norm(2, 1) * b.norm(2, 1);
  return {((a * b).sum(1) / lengths).clamp(-1, 1), lengths != 0};
}

/// The mean, its count and the sum of squared deviations of several micro-batches together (Chan, Golub, LeVeque 1979).
struct Spread {
  double count = 0, mean = 0, squares = 0;

  void add(const double* note) {
    if (note[0] == 0) return;
    const double total = count + note[0], difference = note[1] - mean;
    squares += note[2] + difference * difference * count * note[0] / total;
    mean += difference * note[0] / total;
    count = total;
  }
  double variance() const { return squares / count; }
};

/// What the notes of one detail of one segment add up to.
class Pool {
 public:
  void add(Detail detail, const double* note) {
    any_ = true;
    if (detail == Detail::attention_logit_max) {
      if (!(note[0] <= largest_)) largest_ = note[0];  // so that nan stays
      return;
    }
    first_.add(note);
    second_.add(note + 3);
    for (std::size_t i = 0; i < sums_.size(); ++i) sums_[i] += note[i];
  }

  std::optional<double> value(Detail detail) const {
    if (!any_) return std::nullopt;
    switch (detail) {
      case Detail::branch_cosine:
      case Detail::mean_share:
      case Detail::attention_entropy:
      case Detail::zero_fraction:
      case Detail::angular_distance:
      case Detail::token_diversity_db: return ratio(sums_[0], sums_[1]);
      case Detail::token_norm_cv:
      case Detail::branch_norm_cv:
        return first_.count == 0 ? std::nullopt : ratio(std::sqrt(first_.variance()), first_.mean);
      case Detail::branch_variance_gain:
        return first_.count == 0 ? std::nullopt : ratio(second_.variance(), first_.variance());
      case Detail::dual_rms: return root(ratio(sums_[0], sums_[1]));
      case Detail::dual_grad_norm: return std::sqrt(sums_[0]);
      case Detail::skip_grad_share:  // the third number counts the passes that found a skip
        return sums_[2] == 0 ? std::nullopt : root(ratio(sums_[0], sums_[1]));
      case Detail::stream_grad_cosine: return ratio(sums_[0], std::sqrt(sums_[1]) * std::sqrt(sums_[2]));
      case Detail::attention_logit_max:
        return largest_ == -std::numeric_limits<double>::infinity() ? std::nullopt : std::optional(largest_);
    }
    return std::nullopt;
  }

 private:
  static std::optional<double> ratio(double numerator, double denominator) {
    return denominator == 0 ? std::nullopt : std::optional(numerator / denominator);
  }
  static std::optional<double> root(const std::optional<double>& square) {
    return square ? std::optional(std::sqrt(*square)) : std::nullopt;
  }

  bool any_ = false;
  Spread first_, second_;
  std::array<double, 3> sums_{};
  double largest_ = -std::numeric_limits<double>::infinity();
};

}  // namespace

DetailMeter::DetailMeter(const Config& config, const Layout& layout, std::set<Detail> wanted)
    : wanted_(std::move(wanted)),
      causal_(config.model.causal),
      second_stream_(placement_row(config.model.placement).second_stream),
      last_of_blocks_(0) {
  for (std::size_t s = 0; s < layout.segments.size(); ++s) {
    const std::string& sublayer = layout.segments[s].sublayer;
    has_stream_.push_back(sublayer != "final_norm" && sublayer != "head");
    if (has_stream_.back()) last_of_blocks_ = s;
  }
}

void DetailMeter::reset() {
  places_.clear();
  notes_.clear();
  read_.clear();
}

Taps DetailMeter::taps() const {
  return {.residual_terms = wants(Detail::branch_norm_cv) || wants(Detail::branch_cosine),
          .branch_ends = wants(Detail::branch_variance_gain),
          .attention = wants(Detail::attention_entropy) || wants(Detail::attention_logit_max),
          .activation = wants(Detail::zero_fraction),
          .skip_gradient = wants(Detail::skip_grad_share)};
}

void DetailMeter::note(std::size_t segment, Detail detail, const std::vector<at::Tensor>& numbers) {
  std::vector<at::Tensor> cells;
  for (const at::Tensor& number : numbers) cells.push_back(in_double(number).reshape({}));
  const at::Tensor zero = at::zeros({}, cells.front().options());
  while (static_cast<std::int64_t>(cells.size()) < numbers_a_note) cells.push_back(zero);
  places_.push_back({segment, detail});
  notes_.push_back(at::stack(cells));
}

void DetailMeter::forward_done(std::size_t segment, const Stream& input, const Stream& output, const Inside& inside,
                               const Batch& batch) {
  const at::NoGradGuard no_grad;
  if (has_stream_[segment]) look_at_stream(segment, input, output, batch.real);
  look_at_branch(segment, inside, batch.real);
  if (inside.query.defined()) look_at_attention(segment, inside, batch.real);
}

void DetailMeter::look_at_stream(std::size_t segment, const Stream& input, const Stream& output,
                                 const at::Tensor& real) {
  const at::Tensor counted = counted_rows(real, as_rows(output.x));
  const at::Tensor rows = real_rows(output.x, counted);
  if (wants(Detail::token_norm_cv)) note(segment, Detail::token_norm_cv, spread_note(rows.norm(2, 1), counted));
  if (wants(Detail::mean_share)) {
    const at::Tensor rms = rows.square().mean(1).sqrt();
    note(segment, Detail::mean_share, mean_note(rows.mean(1).abs() / rms, counted, rms != 0));
  }
  if (wants(Detail::angular_distance) && input.x.defined() && input.x.sizes() == output.x.sizes()) {
    const auto [cosine, exists] = cosines(real_rows(input.x, counted), rows);
    note(segment, Detail::angular_distance, mean_note(cosine.acos() / std::numbers::pi, counted, exists));
  }
  if (wants(Detail::token_diversity_db) && output.x.dim() == 3) {
    const std::int64_t sequences = output.x.size(0);
    const at::Tensor tokens = rows.view({sequences, output.x.size(1), -1});
    const at::Tensor weights = counted.view({sequences, -1, 1});
    const at::Tensor count = weights.sum(1, /*keepdim=*/true);
    const at::Tensor mean = (tokens * weights).sum(1, /*keepdim=*/true) / count.clamp_min(1);
    const at::Tensor apart = ((tokens - mean).square() * weights).sum({1, 2});
    const at::Tensor all = tokens.square().sum({1, 2});
    note(segment, Detail::token_diversity_db,
         mean_note(10 * (apart / all).log10(), at::ones_like(all), (count.view({-1}) > 1).logical_and(all != 0)));
  }
  if (wants(Detail::dual_rms) && second_stream_ && output.second.defined()) {
    const at::Tensor second = real_rows(output.second, counted);
    note(segment, Detail::dual_rms, {second.square().sum(), counted.sum() * second.size(1)});
  }
}

void DetailMeter::look_at_branch(std::size_t segment, const Inside& inside, const at::Tensor& real) {
  if (inside.branch.defined() && (wants(Detail::branch_norm_cv) || wants(Detail::branch_cosine))) {
    const at::Tensor counted = counted_rows(real, as_rows(inside.branch));
    const at::Tensor branch = real_rows(inside.branch, counted);
    if (wants(Detail::branch_norm_cv)) note(segment, Detail::branch_norm_cv, spread_note(branch.norm(2, 1), counted));
    if (wants(Detail::branch_cosine) && inside.skip.defined()) {
      const auto [cosine, exists] = cosines(branch, real_rows(inside.skip, counted));
      note(segment, Detail::branch_cosine, mean_note(cosine, counted, exists));
    }
  }
  if (inside.branch_input.defined()) {
    const at::Tensor counted = counted_rows(real, as_rows(inside.branch_input));
    std::vector<at::Tensor> ends = spread_note(real_rows(inside.branch_input, counted), counted);
    const std::vector<at::Tensor> output = spread_note(real_rows(inside.branch_output, counted), counted);
    ends.insert(ends.end(), output.begin(), output.end());
    note(segment, Detail::branch_variance_gain, ends);
  }
  if (inside.activation.defined()) {
    const at::Tensor rows = as_rows(inside.activation);
    const at::Tensor counted = counted_rows(real, rows);
    note(segment, Detail::zero_fraction,
         {((rows == 0).sum(1) * counted).sum(), counted.sum() * static_cast<double>(rows.size(1))});
  }
}

void DetailMeter::look_at_attention(std::size_t segment, const Inside& inside, const at::Tensor& real) {
  const std::int64_t tokens = inside.query.size(2);
  const at::TensorOptions options = inside.query.options();
  at::Tensor entropy_sum = at::zeros({}, options.dtype(at::kDouble)), rows = entropy_sum;
  at::Tensor largest = at::full({}, -std::numeric_limits<double>::infinity(), options.dtype(at::kDouble));
  at::Tensor order = at::ones({tokens, tokens}, options.dtype(at::kBool));
  if (causal_) order = order.tril();
  // One sequence at a time: the scores of a whole batch in double may not fit.
  for (std::int64_t b = 0; b < inside.query.size(0); ++b) {
    const at::Tensor q = in_double(inside.query[b]), k = in_double(inside.key[b]);  // [heads, T, d_h]
    at::Tensor visible = order;
    if (real.defined()) visible = visible.logical_and(real[b].unsqueeze(0)).logical_and(real[b].unsqueeze(1));
    const at::Tensor scores = (at::matmul(q, k.transpose(1, 2)) / std::sqrt(static_cast<double>(q.size(2))))
                                  .masked_fill(visible.logical_not(), -std::numeric_limits<double>::infinity());
    largest = at::maximum(largest, scores.max());
    const at::Tensor seen = visible.sum(1);  // positions that each row sees, [T]
    const at::Tensor weights = at::softmax(scores, -1);
    const at::Tensor entropy = -at::xlogy(weights, weights).sum(-1) / in_double(seen).log();  // [heads, T]
    const at::Tensor counts = (seen > 1).unsqueeze(0).expand_as(entropy);
    entropy_sum = entropy_sum + at::where(counts, entropy, at::zeros({}, entropy.options())).sum();
    rows = rows + counts.sum();
  }
  if (wants(Detail::attention_entropy)) note(segment, Detail::attention_entropy, {entropy_sum, rows});
  if (wants(Detail::attention_logit_max)) note(segment, Detail::attention_logit_max, {largest});
}

void DetailMeter::gradient_arrived(std::size_t segment, const Stream& gradient) {
  if (!has_stream_[segment] || !gradient.x.defined()) return;
  const at::NoGradGuard no_grad;
  const at::Tensor x = in_double(gradient.x);
  if (wants(Detail::stream_grad_cosine)) {
    if (segment == last_of_blocks_) gradient_after_blocks_ = x.clone();
    if (gradient_after_blocks_.sizes() == x.sizes())
      note(segment, Detail::stream_grad_cosine,
           {(x * gradient_after_blocks_).sum(), x.square().sum(), gradient_after_blocks_.square().sum()});
  }
  // What arrives here is the gradient below the segment above.
  if (wants(Detail::skip_grad_share) && segment < last_of_blocks_)
    note(segment + 1, Detail::skip_grad_share, {at::zeros({}, x.options()), x.square().sum()});
  if (wants(Detail::dual_grad_norm) && second_stream_ && segment > 0 && gradient.second.defined())
    note(segment, Detail::dual_grad_norm, {in_double(gradient.second).square().sum()});
}

void DetailMeter::skip_gradient_found(std::size_t segment, const at::Tensor& gradient) {
  if (!wants(Detail::skip_grad_share)) return;
  const at::Tensor squares = in_double(gradient).square().sum();
  note(segment, Detail::skip_grad_share, {squares, at::zeros({}, squares.options()), at::ones({}, squares.options())});
}

void DetailMeter::gather(Readout& readout) {
  if (notes_.empty()) return;
  const at::Tensor all = at::stack(notes_);
  readout.add(all, [this, count = all.numel()](const double* numbers) { read_.assign(numbers, numbers + count); });
}

std::vector<Details> DetailMeter::details() const {
  std::vector<Details> details(has_stream_.size());
  if (notes_.empty()) return details;
  const std::vector<double> own = read_.empty() ? read_back(at::stack(notes_)) : std::vector<double>();
  const double* note = own.empty() ? read_.data() : own.data();
  std::vector<std::array<Pool, detail_count>> pools(details.size());
  for (const Place& place : places_) {
    pools[place.segment][static_cast<std::size_t>(place.detail)].add(place.detail, note);
    note += numbers_a_note;
  }
  for (std::size_t s = 0; s < details.size(); ++s)
    for (std::size_t d = 0; d < detail_count; ++d) details[s][d] = pools[s][d].value(static_cast<Detail>(d));
  return details;
}

}  // namespace gradflow
