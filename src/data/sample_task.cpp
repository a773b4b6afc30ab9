#include "data/sample_task.h"

#include <utility>

#include "data/drawn_source.h"

namespace gradflow {

namespace {

class SampleSource final : public DrawnSource {
 public:
  SampleSource(const Config& config, std::unique_ptr<SampleTask> task)
      : DrawnSource(config),
        dtype_(config.compute.dtype == Dtype::float64 ? at::kDouble : at::kFloat),
        task_(std::move(task)) {}

  const TaskFacts& facts() const override { return task_->facts(); }

 private:
  Batch make(const RandomStream& stream, Part part, std::int64_t index) const override {
    std::vector<std::int64_t> shape = task_->shape();
    shape.insert(shape.begin(), batch());
    const at::Tensor inputs = at::empty(shape, at::kDouble);
    const at::Tensor classes = at::empty({batch()}, at::kLong);
    const auto features = static_cast<std::size_t>(inputs.numel() / batch());
    for (std::int64_t row = 0; row < batch(); ++row) {
      double* const input = inputs.data_ptr<double>() + static_cast<std::size_t>(row) * features;
      classes.data_ptr<std::int64_t>()[row] = task_->draw(draw_of(stream, part, index, row), {input, features});
    }
    Batch made;
    made.inputs = inputs.to(dtype_);
    made.targets = task_->asks_for_input() ? made.inputs : classes;
    made.tokens = batch();
    return made;
  }

  at::ScalarType dtype_;
  std::unique_ptr<SampleTask> task_;
};

}  // namespace

std::unique_ptr<DataSource> make_sample_source(const Config& config, std::unique_ptr<SampleTask> task) {
  return std::make_unique<SampleSource>(config, std::move(task));
}

}  // namespace gradflow
