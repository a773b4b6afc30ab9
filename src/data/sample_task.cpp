#include "data/sample_task.h"

#include <utility>

namespace gradflow {

namespace {

class SampleSource : public DataSource {
 public:
  SampleSource(const Config& config, std::unique_ptr<SampleTask> task)
      : batch_(config.train.batch),
        accumulation_(config.train.accumulation),
        dtype_(config.compute.dtype == Dtype::float64 ? at::kDouble : at::kFloat),
        training_(sequence_stream(config.seed, Part::training)),
        validation_(sequence_stream(config.seed, Part::validation)),
        task_(std::move(task)) {}

  const TaskFacts& facts() const override { return task_->facts(); }

  Batch training_batch(std::int64_t step, std::int64_t micro) const override {
    return make(training_, Part::training, (step - 1) * accumulation_ + micro);
  }

  Batch validation_batch(std::int64_t index) const override { return make(validation_, Part::validation, index); }

 private:
  Batch make(const RandomStream& stream, Part part, std::int64_t index) const {
    std::vector<std::int64_t> shape = task_->shape();
    shape.insert(shape.begin(), batch_);
    const at::Tensor inputs = at::empty(shape, at::kDouble);
    const at::Tensor classes = at::empty({batch_}, at::kLong);
    const auto features = static_cast<std::size_t>(inputs.numel() / batch_);
    for (std::int64_t row = 0; row < batch_; ++row) {
      const SequenceDraw draw(stream, part, static_cast<std::uint64_t>(index * batch_ + row));
      double* const input = inputs.data_ptr<double>() + static_cast<std::size_t>(row) * features;
      classes.data_ptr<std::int64_t>()[row] = task_->draw(draw, {input, features});
    }
    Batch batch;
    batch.inputs = inputs.to(dtype_);
    batch.targets = task_->asks_for_input() ? batch.inputs : classes;
    batch.tokens = batch_;
    return batch;
  }

  std::int64_t batch_;
  std::int64_t accumulation_;
  at::ScalarType dtype_;
  RandomStream training_;
  RandomStream validation_;
  std::unique_ptr<SampleTask> task_;
};

}  // namespace

std::unique_ptr<DataSource> make_sample_source(const Config& config, std::unique_ptr<SampleTask> task) {
  return std::make_unique<SampleSource>(config, std::move(task));
}

}  // namespace gradflow
