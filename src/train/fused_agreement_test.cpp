// The fused backend against the reference in float64 at sizes that fill no vector: after one step and after twenty, at
// every SIMD level, with everything that a configuration may switch.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "config/backend.h"
#include "config/compatibility.h"
#include "kernels/simd_level.h"
#include "measure/stream_statistics.h"
#include "testing/training.h"

namespace gradflow {
namespace {

/// Width 20 in five heads, context 7, vocabulary 13: nothing is a multiple of anything.
Config odd_config() {
  Config config =
      testing::small_transformer({.depth = 3, .width = 20, .heads = 5, .vocabulary = 13, .context = 7, .batch = 3});
  config.name = "odd";
  config.model.ffn_width = 37;
  config.data.task = Task::quadratic;
  config.train.steps = 20;
  config.train.learning_rate = 3e-4;
  config.train.clip_norm = 1;
  config.train.weight_decay = 0.1;
  return config;
}

struct Variant {
  std::string name;
  std::function<void(Config&)> change;
};

void PrintTo(const Variant& variant, std::ostream* out) { *out << variant.name; }

std::vector<Variant> variants() {
  std::vector<Variant> all;
  for (const Placement placement : allowed_placements(StackKind::transformer))
    for (const Norm norm : allowed_norms(StackKind::transformer, placement))
      for (const Residual residual : allowed_residuals(StackKind::transformer, placement)) {
        const auto change = [=](Config& c) {
          c.model.placement = placement;
          c.model.norm = norm;
          c.model.residual = residual;
          if (residual == Residual::rezero) c.model.residual_gate = 0.3;  // closed, most of it would have no gradient
          c.model.mix_post_fraction = 0.5;
        };
        Config config = odd_config();
        change(config);
        if (!fused_obstacles(resolved(config)).empty()) continue;
        all.push_back(
            {std::string(name_of(placement)) + "_" + std::string(name_of(norm)) + "_" + std::string(name_of(residual)),
             change});
      }
  const auto add = [&](const char* name, std::function<void(Config&)> change) {
    all.push_back({name, std::move(change)});
  };
  add("relu", [](Config& c) { c.model.activation = Activation::relu; });
  add("bidirectional", [](Config& c) { c.model.causal = false; });
  add("without_bias", [](Config& c) { c.model.bias = false; });
  add("without_bias_post", [](Config& c) {
    c.model.bias = false;
    c.model.placement = Placement::sandwich;
  });
  add("tied", [](Config& c) { c.model.tie_embeddings = true; });
  add("sinusoidal_positions", [](Config& c) { c.model.positions = Positions::sinusoidal; });
  add("no_positions", [](Config& c) { c.model.positions = Positions::none; });
  add("padding", [](Config& c) { c.data.padding_fraction = 0.4; });
  add("padding_bidirectional", [](Config& c) {
    c.data.padding_fraction = 0.4;
    c.model.causal = false;
  });
  add("answer_only", [](Config& c) { c.data.task = Task::copy; });
  add("accumulation", [](Config& c) { c.train.accumulation = 3; });
  add("branch_factor", [](Config& c) {
    c.model.branch_scale = 0.7;
    c.model.branch_warmup = 4;
  });
  add("scaled_branch_factor", [](Config& c) {
    c.model.branch_scale = 0.7;
    c.model.residual = Residual::scaled;
    c.model.placement = Placement::sandwich;
  });
  add("recompute", [](Config& c) { c.compute.recompute = true; });
  add("recompute_post", [](Config& c) {
    c.compute.recompute = true;
    c.model.placement = Placement::post;
  });
  add("one_token", [](Config& c) { c.data.context = 1; });
  add("long_context", [](Config& c) { c.data.context = 83; });
  add("one_head", [](Config& c) { c.model.heads = 1; });
  add("width_one", [](Config& c) {
    c.model.width = 1;
    c.model.heads = 1;
    c.model.norm = Norm::none;  // a norm over one feature leaves a sign, or nothing
  });
  add("wide_heads", [](Config& c) {
    c.model.width = 70;
    c.model.heads = 2;
  });
  add("round_sizes", [](Config& c) {
    c.model.width = 32;
    c.model.heads = 4;
    c.model.ffn_width = 128;
    c.data.context = 32;
    c.data.vocabulary = 64;
    c.train.batch = 5;
  });
  // Two chunks of two sequences and one of one, through products of our own in more than one panel.
  const auto several_chunks = [](Config& c) {
    c.model.depth = 1;
    c.model.width = 80;
    c.model.heads = 5;
    c.model.ffn_width = 256;
    c.data.context = 50;
    c.data.vocabulary = 32;
    c.train.batch = 5;
  };
  add("several_chunks", several_chunks);
  add("several_chunks_accumulation", [=](Config& c) {
    several_chunks(c);
    c.train.accumulation = 2;
  });
  add("several_chunks_padding", [=](Config& c) {
    several_chunks(c);
    c.data.padding_fraction = 0.4;
  });
  add("several_chunks_recompute", [=](Config& c) {
    several_chunks(c);
    c.model.depth = 3;
    c.compute.recompute = true;
  });
  add("evaluation", [](Config& c) { c.train.evaluate_every = 1; });
  return all;
}

class FusedAgreement : public ::testing::TestWithParam<Variant> {
 protected:
  ~FusedAgreement() override { force_simd_level(""); }
};

/// Softmax does not see the key bias: its gradient is the rounding of zero, and Adam makes steps of it.
bool is_rounding_only(const std::string& name) { return name.ends_with(".k.bias"); }

void expect_near(double measured, double expected, double relative, double floor, const std::string& what) {
  EXPECT_LE(std::abs(measured - expected), relative * std::abs(expected) + floor)
      << what << ": measured " << measured << ", expected " << expected;
}

/// Gradient norms of each tensor, the whole and the loss of one step.
void expect_step(const testing::TrainedRun& fused, const testing::TrainedRun& reference, std::size_t s,
                 double relative) {
  SCOPED_TRACE("step " + std::to_string(s + 1));
  const StepResult& f = fused.steps.at(s);
  const StepResult& r = reference.steps.at(s);
  expect_near(f.loss, r.loss, relative, 0, "loss");
  expect_near(f.grad_norm, r.grad_norm, relative, 0, "grad_norm");
  if (r.eval_loss) expect_near(f.eval_loss.value(), *r.eval_loss, relative, 0, "eval_loss");
  const auto& entries = fused.stack->store().entries();
  for (std::size_t e = 0; e < entries.size(); ++e) {
    if (is_rounding_only(entries[e].name)) continue;
    // What is small beside the whole holds fewer digits of it.
    expect_near(std::sqrt(f.gradients.squares[e]), std::sqrt(r.gradients.squares[e]), relative,
                0.05 * relative * r.grad_norm, "gradient of " + entries[e].name);
    expect_near(std::sqrt(f.weight_squares[e]), std::sqrt(r.weight_squares[e]), relative, relative,
                "norm of " + entries[e].name);
  }
}

void expect_streams(const std::vector<StreamStatistics>& fused, const std::vector<StreamStatistics>& reference,
                    double relative) {
  ASSERT_EQ(fused.size(), reference.size());
  for (std::size_t s = 0; s < fused.size(); ++s) {
    const auto expect = [&](const char* what, const std::optional<double>& f, const std::optional<double>& r,
                            double floor = 0) {
      ASSERT_EQ(f.has_value(), r.has_value()) << what << " of segment " << s;
      if (r) expect_near(*f, *r, relative, floor, std::string(what) + " of segment " + std::to_string(s));
    };
    const double size = reference[s].stream_rms.value_or(0);
    expect("norm_input_rms", fused[s].norm_input_rms, reference[s].norm_input_rms);
    expect("stream_mean", fused[s].stream_mean, reference[s].stream_mean, relative * size);
    expect("stream_variance", fused[s].stream_variance, reference[s].stream_variance);
    expect("stream_rms", fused[s].stream_rms, reference[s].stream_rms);
    expect("stream_grad_norm", fused[s].stream_grad_norm, reference[s].stream_grad_norm);
    expect("branch_rms", fused[s].branch_rms, reference[s].branch_rms);
    expect("branch_ratio", fused[s].branch_ratio, reference[s].branch_ratio);
  }
}

/// Keeps the statistics of the first step.
class FirstStep final : public Watcher {
 public:
  explicit FirstStep(const Config& config) : meter_(make_layout(config), at::kCPU) {}
  void forward_done(std::size_t segment, const Stream& input, const Stream& output, const Inside& inside,
                    const Batch& batch) override {
    if (!done_) meter_.forward_done(segment, input, output, inside, batch);
  }
  void gradient_arrived(std::size_t segment, const Stream& gradient) override {
    if (!done_) meter_.gradient_arrived(segment, gradient);
    if (segment == 0) done_ = true;
  }
  std::vector<StreamStatistics> statistics() const { return meter_.statistics(); }

 private:
  StreamMeter meter_;
  bool done_ = false;
};

TEST_P(FusedAgreement, WithTheReference) {
  Config config = odd_config();
  GetParam().change(config);
  config.compute.backend = Backend::fused;
  config = resolved(config);
  Config exact = config;
  exact.compute.backend = Backend::aten;
  exact.compute.dtype = Dtype::float64;
  const auto as_built = [](Stack&) {};
  FirstStep of_reference(exact);
  const testing::TrainedRun reference = testing::train(exact, as_built, &of_reference);
  for (const std::string& level : simd_levels()) {
    SCOPED_TRACE(level);
    force_simd_level(level);
    FirstStep of_fused(config);
    const testing::TrainedRun fused = testing::train(config, as_built, &of_fused);
    expect_streams(of_fused.statistics(), of_reference.statistics(), 2e-6);
    expect_step(fused, reference, 0, 2e-6);
    expect_step(fused, reference, 19, 1e-4);
  }
}

TEST_P(FusedAgreement, SameSeedSameBitsWatchedOrNot) {
  Config config = odd_config();
  GetParam().change(config);
  config.compute.backend = Backend::fused;
  config.train.steps = 3;
  config = resolved(config);
  const auto as_built = [](Stack&) {};
  StreamMeter meter(make_layout(config), at::kCPU);
  const testing::TrainedRun first = testing::train(config), again = testing::train(config),
                            watched = testing::train(config, as_built, &meter);
  EXPECT_EQ(first.losses(), again.losses());
  EXPECT_EQ(first.losses(), watched.losses());
  EXPECT_TRUE(at::equal(first.stack->store().values(), again.stack->store().values()));
  EXPECT_TRUE(at::equal(first.stack->store().values(), watched.stack->store().values()));
}

INSTANTIATE_TEST_SUITE_P(Variants, FusedAgreement, ::testing::ValuesIn(variants()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace gradflow
