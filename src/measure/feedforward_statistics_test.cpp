// The columns of layers.csv for images: rows are samples, features all values of one.

#include <gtest/gtest.h>

#include "data/source.h"
#include "measure/stream_statistics.h"
#include "model/stack.h"

namespace gradflow {
namespace {

/// Keeps what the block under test shows.
class Note final : public Watcher {
 public:
  explicit Note(std::size_t segment) : segment_(segment) {}
  void forward_done(std::size_t s, const Stream& in, const Stream& out, const Inside& what, const Batch&) override {
    if (s == segment_) input = in.x, output = out.x, branch = what.branch;
  }
  void gradient_arrived(std::size_t s, const Stream& of) override {
    if (s == segment_) gradient = of.x;
  }
  at::Tensor input, output, branch, gradient;

 private:
  std::size_t segment_;
};

double rms(const at::Tensor& x) { return x.square().mean().sqrt().item<double>(); }

TEST(StreamMeter, TakesASampleOfImagesAsOneRow) {
  Config config;
  config.compute.dtype = Dtype::float64;
  config.model.stack = StackKind::resnet;
  config.model.depth = 3;
  config.model.width = 4;
  config.model.norm = Norm::batchnorm;
  config.data.task = Task::cifar10;
  config.data.side = 8;
  config.train.batch = 6;
  Stack stack(config, at::kCPU);
  const Batch batch = make_source(config)->training_batch(1, 0);
  constexpr std::size_t block = 2;  // where width and side change
  StreamMeter meter(stack.layout(), at::kCPU);
  Note note(block);
  Watcher* const watchers[] = {&meter, &note};
  const Pass pass{.batch = &batch};
  stack.forward(pass, watchers);
  stack.backward(pass, 1, watchers);

  const StreamStatistics row = meter.statistics().at(block);
  EXPECT_NEAR(row.stream_mean.value(), note.output.mean().item<double>(), 1e-12);
  EXPECT_NEAR(row.stream_variance.value(), note.output.flatten(1).var(1, /*unbiased=*/false).mean().item<double>(),
              1e-12);
  EXPECT_NEAR(row.stream_rms.value(), rms(note.output), 1e-12);
  EXPECT_NEAR(row.stream_grad_norm.value(), note.gradient.norm().item<double>(), 1e-12);
  EXPECT_NEAR(row.norm_input_rms.value(), rms(note.input), 1e-12);
  EXPECT_NEAR(row.branch_rms.value(), rms(note.branch), 1e-12);
  EXPECT_NEAR(row.branch_ratio.value(), rms(note.branch) / rms(note.input), 1e-12);
}

}  // namespace
}  // namespace gradflow
