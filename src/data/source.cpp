#include "data/source.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "config/derived.h"
#include "core/error.h"
#include "data/drawn_source.h"
#include "data/image_tasks.h"
#include "data/markov.h"
#include "data/question.h"
#include "data/rearrangement.h"
#include "data/requirements.h"
#include "data/sample_task.h"
#include "data/sequence_task.h"
#include "data/text.h"
#include "data/unstructured.h"
#include "data/vector_tasks.h"

namespace gradflow {

namespace {

std::unique_ptr<SequenceTask> make_task(const Config& config) {
  const DataConfig& data = config.data;
  switch (data.task) {
    case Task::markov: return std::make_unique<MarkovTask>(data);
    case Task::copy:
    case Task::reverse:
    case Task::sort: return std::make_unique<RearrangementTask>(data);
    case Task::majority: return std::make_unique<MajorityTask>(data);
    case Task::modular: return std::make_unique<ModularTask>(data);
    case Task::random: return std::make_unique<RandomTask>(data);
    case Task::quadratic: return std::make_unique<QuadraticTask>(data, config.train.batch);
    case Task::text: return std::make_unique<TextTask>(data, config.train.evaluate_every > 0);
    case Task::teacher:
    case Task::clusters:
    case Task::identity:
    case Task::cifar10: break;
  }
  throw std::logic_error(fmt::format("{} is no task on sequences", name_of(data.task)));
}

/// Null for a task on sequences.
std::unique_ptr<SampleTask> make_sample_task(const Config& config) {
  const DataConfig& data = config.data;
  switch (data.task) {
    case Task::teacher: return std::make_unique<TeacherTask>(data);
    case Task::clusters: return std::make_unique<ClustersTask>(data);
    case Task::identity: return std::make_unique<IdentityTask>(data);
    case Task::cifar10:
      if (data.files.empty()) return std::make_unique<TextureTask>(data);
      return std::make_unique<CifarTask>(data, config.seed, config.train.evaluate_every > 0);
    default: return nullptr;
  }
}

/// Batches of token sequences. The tail of every sequence is padding: input token 0, no target, not real.
class SequenceSource final : public DrawnSource {
 public:
  explicit SequenceSource(const Config& config)
      : DrawnSource(config), context_(config.data.context), padding_(padding_tokens(config.data)) {
    require_tokens(config.data, 1);
    task_ = make_task(config);
    if (padding_ == 0) return;
    real_ = at::ones({batch(), context_}, at::kBool);
    real_.slice(1, context_ - padding_, context_).fill_(false);
  }

  const TaskFacts& facts() const override { return task_->facts(); }

 private:
  Batch make(const RandomStream& stream, Part part, std::int64_t index) const override {
    Batch made;
    made.inputs = at::zeros({batch(), context_}, at::kLong);
    made.targets = at::full({batch(), context_}, no_target, at::kLong);
    made.real = real_;
    made.tokens = batch() * (context_ - padding_);
    const auto length = static_cast<std::size_t>(context_ - padding_);
    for (std::int64_t row = 0; row < batch(); ++row)
      task_->draw(draw_of(stream, part, index, row), {made.inputs.data_ptr<std::int64_t>() + row * context_, length},
                  {made.targets.data_ptr<std::int64_t>() + row * context_, length});
    return made;
  }

  std::int64_t context_;
  std::int64_t padding_;
  std::unique_ptr<SequenceTask> task_;
  at::Tensor real_;  // undefined without padding
};

}  // namespace

std::unique_ptr<DataSource> make_source(const Config& config) {
  if (auto task = make_sample_task(config)) return make_sample_source(config, std::move(task));
  return std::make_unique<SequenceSource>(config);
}

}  // namespace gradflow
