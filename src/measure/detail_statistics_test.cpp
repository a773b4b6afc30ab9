// The columns of the set `all`, each against its definition written out element by element, over two micro-batches with
// padding.

#include "measure/detail_statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <optional>

#include "config/placements.h"
#include "config/quantities.h"
#include "config/resolved.h"
#include "data/source.h"
#include "testing/training.h"

namespace gradflow {
namespace {

std::set<Detail> every_detail() {
  std::set<Detail> details;
  for (std::size_t d = 0; d < detail_count; ++d) details.insert(static_cast<Detail>(d));
  return details;
}

double at(const at::Tensor& x, std::initializer_list<std::int64_t> place) {
  at::Tensor element = x;
  for (const std::int64_t i : place) element = element[i];
  return element.to(at::kDouble).item<double>();
}

/// A vector of numbers: one token's features.
using Numbers = std::vector<double>;

double dot(const Numbers& a, const Numbers& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}
double length(const Numbers& a) { return std::sqrt(dot(a, a)); }
double mean_of(const Numbers& a) {
  double sum = 0;
  for (const double value : a) sum += value;
  return sum / static_cast<double>(a.size());
}
double variance_of(const Numbers& a) {
  const double mean = mean_of(a);
  double sum = 0;
  for (const double value : a) sum += (value - mean) * (value - mean);
  return sum / static_cast<double>(a.size());
}

/// What one segment showed in every micro-batch.
struct Seen {
  std::vector<Stream> inputs, outputs, gradients;
  std::vector<Inside> insides;
  std::vector<at::Tensor> real;
};

class Everything final : public Watcher {
 public:
  explicit Everything(std::size_t segments) : seen(segments) {}
  Taps taps() const override { return {true, true, true, true, true}; }
  void forward_done(std::size_t s, const Stream& input, const Stream& output, const Inside& inside,
                    const Batch& batch) override {
    seen[s].inputs.push_back(input);
    seen[s].outputs.push_back(output);
    seen[s].insides.push_back(inside);
    seen[s].real.push_back(batch.real);
  }
  void gradient_arrived(std::size_t s, const Stream& gradient) override { seen[s].gradients.push_back(gradient); }
  std::vector<Seen> seen;
};

/// The tokens of x [B, T, d] that are not padding, over all micro-batches.
template <class Get>
std::vector<Numbers> tokens(const Seen& seen, Get get) {
  std::vector<Numbers> rows;
  for (std::size_t m = 0; m < seen.outputs.size(); ++m) {
    const at::Tensor x = get(m).to(at::kDouble).contiguous();
    for (std::int64_t b = 0; b < x.size(0); ++b)
      for (std::int64_t t = 0; t < x.size(1); ++t) {
        if (seen.real[m].defined() && !seen.real[m][b][t].item<bool>()) continue;
        const double* row = x.data_ptr<double>() + (b * x.size(1) + t) * x.size(2);
        rows.emplace_back(row, row + x.size(2));
      }
  }
  return rows;
}

Numbers flat(const std::vector<Numbers>& rows) {
  Numbers all;
  for (const Numbers& row : rows) all.insert(all.end(), row.begin(), row.end());
  return all;
}

struct Measured {
  std::vector<Details> details;
  std::vector<Seen> seen;
  Layout layout;
};

Measured measure(const Config& config, bool recompute = false) {
  Stack stack(config, at::kCPU);
  const auto source = make_source(config);
  DetailMeter meter(config, stack.layout(), every_detail());
  Everything everything(stack.segment_count());
  Watcher* const watchers[] = {&meter, &everything};
  for (std::int64_t micro = 0; micro < config.train.accumulation; ++micro) {
    const Batch batch = source->training_batch(1, micro);
    const Pass pass{.batch = &batch, .micro = micro, .recompute = recompute};
    stack.forward(pass, watchers);
    stack.backward(pass, 1.0 / static_cast<double>(config.train.accumulation), watchers);
  }
  return {meter.details(), std::move(everything.seen), stack.layout()};
}

Config padded_config() {
  Config config = testing::tiny_config();
  config.model.activation = Activation::relu;
  config.compute.dtype = Dtype::float64;
  config.data.padding_fraction = 0.3;
  config.train.accumulation = 2;
  return config;
}

class DetailColumns : public ::testing::TestWithParam<bool> {
 protected:
  DetailColumns() {
    Config config = padded_config();
    config.model.causal = GetParam();
    measured_ = measure(config);
  }
  double value(std::size_t segment, Detail detail) const {
    const std::optional<double> value = measured_.details[segment][static_cast<std::size_t>(detail)];
    EXPECT_TRUE(value.has_value()) << name_of(detail);
    return value.value_or(std::nan(""));
  }
  Measured measured_;
};

INSTANTIATE_TEST_SUITE_P(Masks, DetailColumns, ::testing::Values(true, false));

TEST_P(DetailColumns, OfStreamAndBranchAreTheirDefinitions) {
  for (std::size_t s = 1; s <= 4; ++s) {
    SCOPED_TRACE(s);
    const Seen& seen = measured_.seen[s];
    const auto before = tokens(seen, [&](std::size_t m) { return seen.inputs[m].x; });
    const auto after = tokens(seen, [&](std::size_t m) { return seen.outputs[m].x; });
    const auto branch = tokens(seen, [&](std::size_t m) { return seen.insides[m].branch; });
    const auto skip = tokens(seen, [&](std::size_t m) { return seen.insides[m].skip; });
    ASSERT_EQ(after.size(), 48u);  // 2 × 4 sequences, 6 of 8 positions real
    double cosine = 0, angle = 0, share = 0;
    Numbers norms, branch_norms;
    for (std::size_t i = 0; i < after.size(); ++i) {
      cosine += dot(branch[i], skip[i]) / (length(branch[i]) * length(skip[i]));
      angle += std::acos(dot(before[i], after[i]) / (length(before[i]) * length(after[i]))) / std::numbers::pi;
      share += std::abs(mean_of(after[i])) / (length(after[i]) / std::sqrt(static_cast<double>(after[i].size())));
      norms.push_back(length(after[i]));
      branch_norms.push_back(length(branch[i]));
    }
    const auto count = static_cast<double>(after.size());
    EXPECT_NEAR(value(s, Detail::branch_cosine), cosine / count, 1e-12);
    EXPECT_NEAR(value(s, Detail::angular_distance), angle / count, 1e-12);
    EXPECT_NEAR(value(s, Detail::mean_share), share / count, 1e-12);
    EXPECT_NEAR(value(s, Detail::token_norm_cv), std::sqrt(variance_of(norms)) / mean_of(norms), 1e-12);
    EXPECT_NEAR(value(s, Detail::branch_norm_cv), std::sqrt(variance_of(branch_norms)) / mean_of(branch_norms), 1e-12);
    const Numbers input = flat(tokens(seen, [&](std::size_t m) { return seen.insides[m].branch_input; }));
    const Numbers output = flat(tokens(seen, [&](std::size_t m) { return seen.insides[m].branch_output; }));
    EXPECT_NEAR(value(s, Detail::branch_variance_gain), variance_of(output) / variance_of(input), 1e-12);
  }
}

TEST_P(DetailColumns, OfGradientsAreTheirDefinitions) {
  const Seen& top = measured_.seen[4];
  for (std::size_t s = 0; s <= 4; ++s) {
    SCOPED_TRACE(s);
    const Seen& seen = measured_.seen[s];
    double product = 0, here = 0, there = 0, below = 0;
    for (std::size_t m = 0; m < seen.gradients.size(); ++m) {
      product += (seen.gradients[m].x * top.gradients[m].x).sum().item<double>();
      here += seen.gradients[m].x.square().sum().item<double>();
      there += top.gradients[m].x.square().sum().item<double>();
      if (s > 0) below += measured_.seen[s - 1].gradients[m].x.square().sum().item<double>();
    }
    EXPECT_NEAR(value(s, Detail::stream_grad_cosine), product / std::sqrt(here * there), 1e-12);
    // Pre-LN: the gradient passes the skip unchanged.
    if (s > 0) {
      EXPECT_NEAR(value(s, Detail::skip_grad_share), std::sqrt(here / below), 1e-12);
    }
  }
  EXPECT_EQ(measured_.details[0][static_cast<std::size_t>(Detail::skip_grad_share)], std::nullopt);
}

TEST_P(DetailColumns, OfAttentionAreTheirDefinitions) {
  for (const std::size_t s : {1, 3}) {
    const Seen& seen = measured_.seen[s];
    double entropy = 0, rows = 0, largest = -INFINITY;
    for (std::size_t m = 0; m < seen.insides.size(); ++m) {
      const at::Tensor q = seen.insides[m].query, k = seen.insides[m].key;
      for (std::int64_t b = 0; b < q.size(0); ++b)
        for (std::int64_t h = 0; h < q.size(1); ++h)
          for (std::int64_t t = 0; t < q.size(2); ++t) {
            if (!seen.real[m][b][t].item<bool>()) continue;
            Numbers weights;
            for (std::int64_t u = 0; u < q.size(2); ++u) {
              if (!seen.real[m][b][u].item<bool>() || (GetParam() && u > t)) continue;
              double score = 0;
              for (std::int64_t i = 0; i < q.size(3); ++i) score += at(q, {b, h, t, i}) * at(k, {b, h, u, i});
              score /= std::sqrt(static_cast<double>(q.size(3)));
              largest = std::max(largest, score);
              weights.push_back(std::exp(score));
            }
            if (weights.size() < 2) continue;
            double total = 0, sum = 0;
            for (const double weight : weights) total += weight;
            for (const double weight : weights) sum -= weight / total * std::log(weight / total);
            entropy += sum / std::log(static_cast<double>(weights.size()));
            rows += 1;
          }
    }
    EXPECT_EQ(rows, GetParam() ? 80 : 96);  // 2 heads × 8 sequences × 6 rows, of which the first sees one position
    EXPECT_NEAR(value(s, Detail::attention_entropy), entropy / rows, 1e-12);
    EXPECT_NEAR(value(s, Detail::attention_logit_max), largest, 1e-12);
    EXPECT_EQ(measured_.details[s][static_cast<std::size_t>(Detail::zero_fraction)], std::nullopt);
    EXPECT_EQ(measured_.details[s + 1][static_cast<std::size_t>(Detail::attention_entropy)], std::nullopt);
  }
}

TEST_P(DetailColumns, ZeroFractionCountsDeadUnitsOfRealTokens) {
  for (const std::size_t s : {2, 4}) {
    const Numbers hidden =
        flat(tokens(measured_.seen[s], [&](std::size_t m) { return measured_.seen[s].insides[m].activation; }));
    const auto zeros = static_cast<double>(std::count(hidden.begin(), hidden.end(), 0.0));
    EXPECT_GT(zeros, 0);
    EXPECT_DOUBLE_EQ(value(s, Detail::zero_fraction), zeros / static_cast<double>(hidden.size()));
  }
}

TEST_P(DetailColumns, TokenDiversityIsThatOfEachSequence) {
  for (std::size_t s = 0; s <= 4; ++s) {
    const std::vector<Numbers> after =
        tokens(measured_.seen[s], [&](std::size_t m) { return measured_.seen[s].outputs[m].x; });
    double decibels = 0;
    for (std::size_t sequence = 0; sequence < 8; ++sequence) {
      Numbers mean(after[0].size());
      double all = 0, apart = 0;
      for (std::size_t t = 0; t < 6; ++t)
        for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += after[sequence * 6 + t][i] / 6;
      for (std::size_t t = 0; t < 6; ++t)
        for (std::size_t i = 0; i < mean.size(); ++i) {
          const double x = after[sequence * 6 + t][i];
          all += x * x;
          apart += (x - mean[i]) * (x - mean[i]);
        }
      decibels += 20 * std::log10(std::sqrt(apart) / std::sqrt(all)) / 8;
    }
    EXPECT_NEAR(value(s, Detail::token_diversity_db), decibels, 1e-10);
  }
}

TEST(DetailMeter, SecondStreamIsResiDualsOnly) {
  Config config = padded_config();
  config.data.padding_fraction = 0;
  for (const Placement placement : {Placement::resi_dual, Placement::b2t}) {
    config.model.placement = placement;
    const Measured measured = measure(config);
    for (std::size_t s = 0; s < measured.details.size(); ++s) {
      const auto rms = measured.details[s][static_cast<std::size_t>(Detail::dual_rms)];
      const auto gradient = measured.details[s][static_cast<std::size_t>(Detail::dual_grad_norm)];
      const bool present = placement == Placement::resi_dual && s >= 1 && s <= 4;
      ASSERT_EQ(rms.has_value(), present) << s;
      ASSERT_EQ(gradient.has_value(), present) << s;
      if (!present) continue;
      double squares = 0, elements = 0, gradient_squares = 0;
      for (std::size_t m = 0; m < 2; ++m) {
        squares += measured.seen[s].outputs[m].second.square().sum().item<double>();
        elements += static_cast<double>(measured.seen[s].outputs[m].second.numel());
        gradient_squares += measured.seen[s].gradients[m].second.square().sum().item<double>();
      }
      EXPECT_NEAR(*rms, std::sqrt(squares / elements), 1e-12);
      EXPECT_NEAR(*gradient, std::sqrt(gradient_squares), 1e-12);
    }
  }
}

/// With the last matrix of every branch at zero no gradient passes a branch: all of it comes through the skip, whatever
/// norm, factor or gate stands behind it.
TEST(DetailMeter, WithoutABranchEverythingComesThroughTheSkip) {
  for (const PlacementRow& row : placement_rows()) {
    SCOPED_TRACE(name_of(row.placement));
    Config config = padded_config();
    config.data.padding_fraction = 0;
    config.model.placement = row.placement;
    config.model.branch_init_scale = 0;
    for (const bool recompute : {false, true}) {
      const Measured measured = measure(resolved(config), recompute);
      for (std::size_t s = 1; s <= 4; ++s) {
        // B2T's block input passes the attention by; ResiDual's second stream begins at the first block's input.
        if (row.placement == Placement::b2t && s % 2 == 1) continue;
        if (row.placement == Placement::resi_dual && s == 1) continue;
        const auto share = measured.details[s][static_cast<std::size_t>(Detail::skip_grad_share)];
        ASSERT_TRUE(share.has_value()) << s;
        EXPECT_NEAR(*share, 1, 1e-9) << s;
      }
    }
  }
}

TEST(DetailMeter, WithoutASkipThereIsNoShareAndNoCosine) {
  for (const Residual residual : {Residual::none, Residual::gate_literal}) {
    Config config = padded_config();
    config.model.residual = residual;
    const Measured measured = measure(resolved(config));
    for (std::size_t s = 1; s <= 4; ++s)
      for (const Detail detail : {Detail::skip_grad_share, Detail::branch_cosine})
        EXPECT_EQ(measured.details[s][static_cast<std::size_t>(detail)], std::nullopt);
    EXPECT_EQ(measured.details[1][static_cast<std::size_t>(Detail::branch_norm_cv)].has_value(),
              residual == Residual::gate_literal);
  }
}

TEST(DetailMeter, WhatDoesNotExistIsAbsent) {
  Config config = padded_config();
  config.model.residual = Residual::rezero;
  const Measured closed = measure(resolved(config));
  EXPECT_EQ(closed.details[1][static_cast<std::size_t>(Detail::branch_cosine)], std::nullopt);
  EXPECT_EQ(closed.details[1][static_cast<std::size_t>(Detail::branch_norm_cv)], std::nullopt);

  config = testing::tiny_config();
  config.data.context = 1;
  const Measured single = measure(resolved(config));
  EXPECT_EQ(single.details[1][static_cast<std::size_t>(Detail::attention_entropy)], std::nullopt);
  EXPECT_EQ(single.details[1][static_cast<std::size_t>(Detail::token_diversity_db)], std::nullopt);
  EXPECT_TRUE(single.details[1][static_cast<std::size_t>(Detail::attention_logit_max)].has_value());
}

TEST(DetailMeter, TakesVectorsAndImages) {
  for (const StackKind stack : {StackKind::mlp, StackKind::resnet})
    for (const Placement placement : {Placement::pre, Placement::post}) {
      Config config;
      config.compute.dtype = Dtype::float64;
      config.model.stack = stack;
      config.model.placement = placement;
      config.model.depth = 3;
      config.model.width = 4;
      config.model.activation = Activation::relu;
      config.data.task = stack == StackKind::mlp ? Task::teacher : Task::cifar10;
      config.data.side = 8;
      config.train.batch = 6;
      const Measured measured = measure(resolved(config));
      const auto get = [&](std::size_t s, Detail d) { return measured.details[s][static_cast<std::size_t>(d)]; };
      const bool changes_shape = stack == StackKind::resnet;
      EXPECT_EQ(get(2, Detail::angular_distance).has_value(), !changes_shape);
      EXPECT_EQ(get(1, Detail::stream_grad_cosine).has_value(), !changes_shape);
      EXPECT_EQ(get(1, Detail::token_diversity_db), std::nullopt);
      EXPECT_EQ(get(1, Detail::attention_entropy), std::nullopt);
      const Seen& seen = measured.seen[2];
      const at::Tensor input = seen.insides[0].branch_input, output = seen.insides[0].branch_output;
      EXPECT_NEAR(get(2, Detail::branch_variance_gain).value(), (output.var(false) / input.var(false)).item<double>(),
                  1e-12);
      EXPECT_NEAR(get(2, Detail::zero_fraction).value(),
                  (seen.insides[0].activation == 0).to(at::kDouble).mean().item<double>(), 1e-12);
      // A sample whose units are all dead has no direction.
      const at::Tensor branch = seen.insides[0].branch.flatten(1), skip = seen.insides[0].skip.flatten(1);
      const at::Tensor lengths = branch.norm(2, 1) * skip.norm(2, 1);
      const at::Tensor cosines = ((branch * skip).sum(1) / lengths).masked_select(lengths > 0);
      EXPECT_NEAR(get(2, Detail::branch_cosine).value(), cosines.mean().item<double>(), 1e-12);
      EXPECT_GT(get(2, Detail::skip_grad_share).value(), 0);
    }
}

TEST(DetailMeter, AsksOnlyForWhatItNeeds) {
  const Config config = testing::tiny_config();
  const Layout layout = make_layout(config);
  const auto taps = [&](std::set<Detail> wanted) { return DetailMeter(config, layout, std::move(wanted)).taps(); };
  const Taps outside = taps({Detail::branch_cosine, Detail::token_norm_cv, Detail::branch_norm_cv, Detail::mean_share,
                             Detail::stream_grad_cosine, Detail::dual_rms, Detail::dual_grad_norm,
                             Detail::angular_distance, Detail::token_diversity_db});
  EXPECT_FALSE(outside.branch_ends || outside.attention || outside.activation || outside.skip_gradient);
  EXPECT_TRUE(outside.residual_terms);
  EXPECT_FALSE(taps({Detail::token_norm_cv, Detail::stream_grad_cosine}).residual_terms);
  EXPECT_TRUE(taps({Detail::zero_fraction}).activation);
  EXPECT_TRUE(taps({Detail::attention_logit_max}).attention);
  EXPECT_TRUE(taps({Detail::skip_grad_share}).skip_gradient);
  EXPECT_TRUE(taps({Detail::branch_variance_gain}).branch_ends);
  // The configuration knows the same of each name.
  for (std::size_t d = 0; d < detail_count; ++d) {
    const Taps own = taps({static_cast<Detail>(d)});
    const std::vector<std::string> word{std::string(name_of(static_cast<Detail>(d)))};
    EXPECT_EQ(look_inside(word), own.branch_ends || own.attention || own.activation || own.skip_gradient) << word[0];
  }
}

/// Looking inside changes no bit of a run, in any placement and residual form.
TEST(DetailMeter, ChangesNoBitOfARun) {
  const auto weights = [](const Config& config, bool look) {
    Stack stack(config, at::kCPU);
    const auto source = make_source(config);
    DetailMeter meter(config, stack.layout(), every_detail());
    testing::StepCollector collector(look ? &meter : nullptr);
    Trainer trainer(config, stack, *source, at::kCPU, {&collector});
    trainer.run();
    return stack.store().values().clone();
  };
  Config config = testing::tiny_config();
  config.train.steps = 3;
  config.model.dropout = 0.1;
  const auto expect_same = [&] {
    EXPECT_TRUE(weights(resolved(config), false).equal(weights(resolved(config), true)));
  };
  for (const PlacementRow& row : placement_rows()) {
    SCOPED_TRACE(name_of(row.placement));
    config.model.placement = row.placement;
    expect_same();
  }
  config.model.placement = Placement::pre;
  for (std::size_t r = 0; r < names_of(Residual{}).size(); ++r) {
    SCOPED_TRACE(names_of(Residual{})[r]);
    config.model.residual = static_cast<Residual>(r);
    config.compute.recompute = r % 2 == 1;
    expect_same();
  }
}

}  // namespace
}  // namespace gradflow
