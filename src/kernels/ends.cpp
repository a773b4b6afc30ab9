#include "kernels/ends.h"

#include <algorithm>
#include <utility>

#include "config/derived.h"
#include "kernels/cross_entropy.h"
#include "kernels/elementwise.h"
#include "kernels/linear_map.h"
#include "kernels/norm_slot.h"
#include "model/transformer.h"

namespace gradflow {
namespace {

class FusedEmbedding final : public Segment {
 public:
  FusedEmbedding(const Config& config, const ParameterStore& store, std::shared_ptr<Workspace> workspace)
      : workspace_(std::move(workspace)),
        width_(workspace_->width),
        weight_(store, "embedding.weight"),
        learned_positions_(store, "position.weight"),
        sum_(workspace_->stream()) {
    if (config.model.positions == Positions::sinusoidal)
      fixed_positions_ = sinusoidal_positions(config.data.context, config.model.width, at::kFloat);
    if (!has_embedding_norm(config.model)) return;
    norm_ = NormSlot(store, "embedding_norm", config.model, 1, workspace_->floats(2 * workspace_->rows));
    normed_ = workspace_->stream();
  }

  Stream forward(const Stream&, const Pass& pass, Inside* inside) override {
    workspace_->set_batch(pass.batch->inputs);
    ids_ = pass.batch->inputs.contiguous();
    const std::int64_t* const ids = ids_.data_ptr<std::int64_t>();
    const float* const positions =
        fixed_positions_.defined() ? fixed_positions_.data_ptr<float>() : learned_positions_.value;
    workspace_->for_each_chunk([&](const Chunk& chunk) {
      for (std::size_t row = chunk.first_row; row < chunk.first_row + chunk.rows; ++row) {
        float* const x = sum_.data() + row * width_;
        std::copy_n(weight_.value + static_cast<std::size_t>(ids[row]) * width_, width_, x);
        if (positions != nullptr) scaled_add(width_, 1, 1, positions + row % workspace_->batch_tokens() * width_, x);
      }
      const std::size_t at = chunk.first_row * width_;
      if (norm_) norm_.forward(chunk, sum_.data() + at, normed_.data() + at);
    });
    if (norm_ && inside != nullptr) inside->norm_input = tensor(sum_);
    return {tensor(norm_ ? normed_ : sum_), {}};
  }

  Stream backward(const Stream& output_gradient) override {
    float* const gradient = workspace_->take_gradient(output_gradient.x);
    const std::int64_t* const ids = ids_.data_ptr<std::int64_t>();
    workspace_->for_each_chunk([&](const Chunk& chunk) {
      float* const g = gradient + chunk.first_row * width_;
      if (norm_) norm_.backward(chunk, g, sum_.data() + chunk.first_row * width_, 0, g);
      for (std::size_t row = chunk.first_row; row < chunk.first_row + chunk.rows; ++row) {
        const float* const x = gradient + row * width_;
        scaled_add(width_, 1, 1, x, weight_.gradient + static_cast<std::size_t>(ids[row]) * width_);
        if (learned_positions_)
          scaled_add(width_, 1, 1, x, learned_positions_.gradient + row % workspace_->batch_tokens() * width_);
      }
    });
    return {};
  }

 private:
  at::Tensor tensor(StreamBuffer& buffer) const {
    return buffer.tensor(workspace_->batch_sequences(), workspace_->batch_tokens());
  }

  std::shared_ptr<Workspace> workspace_;
  std::size_t width_;
  Parameter weight_, learned_positions_;
  at::Tensor fixed_positions_;
  NormSlot norm_;
  StreamBuffer sum_, normed_;
  at::Tensor ids_;
};

class FusedFinalNorm final : public Segment {
 public:
  FusedFinalNorm(const Config& config, const ParameterStore& store, std::shared_ptr<Workspace> workspace)
      : workspace_(std::move(workspace)),
        norm_(store, "final_norm", config.model, 1, workspace_->floats(2 * workspace_->rows)),
        output_(workspace_->stream()) {}

  Stream forward(const Stream& input, const Pass& pass, Inside* inside) override {
    workspace_->set_batch(pass.batch->inputs);
    input_ = input.x;
    if (inside != nullptr) inside->norm_input = input_;
    norm_.forward(whole(), input_.data_ptr<float>(), output_.data());
    return {output_.tensor(workspace_->batch_sequences(), workspace_->batch_tokens()), {}};
  }

  Stream backward(const Stream& output_gradient) override {
    float* const gradient = workspace_->take_gradient(output_gradient.x);
    norm_.backward(whole(), gradient, input_.data_ptr<float>(), 0, gradient);
    input_.reset();
    return {workspace_->gradient_tensor(), {}};
  }

 private:
  Chunk whole() const { return {0, 0, workspace_->batch_sequences(), workspace_->batch_rows()}; }

  std::shared_ptr<Workspace> workspace_;
  NormSlot norm_;
  StreamBuffer output_;
  at::Tensor input_;
};

class FusedHead final : public Segment {
 public:
  FusedHead(const Config& config, const ParameterStore& store, std::shared_ptr<Workspace> workspace)
      : workspace_(std::move(workspace)),
        classes_(static_cast<std::size_t>(config.data.vocabulary.value())),
        logits_(workspace_->floats(workspace_->rows * classes_), classes_),
        shifts_and_logs_(workspace_->floats(2 * workspace_->rows)) {
    WeightRoom room(*workspace_);
    map_ = LinearMap({store, config.model.tie_embeddings ? "embedding.weight" : "head.weight"}, workspace_->width,
                     classes_, room, workspace_->ahead);
  }

  Stream forward(const Stream& input, const Pass& pass, Inside* inside) override {
    workspace_->set_batch(pass.batch->inputs);
    input_ = input.x;
    targets_ = pass.batch->targets.contiguous();
    const std::int64_t* const targets = targets_.data_ptr<std::int64_t>();
    double sum = 0;
    map_.begin_forward();
    workspace_->for_each_chunk([&](const Chunk& chunk) {
      float* const logits = logits_.data() + chunk.first_row * classes_;
      map_.forward(chunk.rows, {input_.data_ptr<float>() + chunk.first_row * width(), width()}, {logits, classes_});
      sum += cross_entropy_sum(chunk.rows, classes_, logits, targets + chunk.first_row,
                               shifts_and_logs_ + 2 * chunk.first_row);
    });
    asked_ = std::count_if(targets, targets + workspace_->batch_rows(), [](std::int64_t t) { return t >= 0; });
    if (inside != nullptr) inside->logits = logits_.tensor(workspace_->batch_sequences(), workspace_->batch_tokens());
    return {at::scalar_tensor(sum / static_cast<double>(asked_), at::kFloat), {}};
  }

  Stream backward(const Stream& output_gradient) override {
    const auto factor = static_cast<float>(output_gradient.x.item<double>() / static_cast<double>(asked_));
    const std::int64_t* const targets = targets_.data_ptr<std::int64_t>();
    float* const logit_gradient = workspace_->wide_gradient;
    map_.begin_backward();
    workspace_->for_each_chunk([&](const Chunk& chunk) {
      const std::size_t at = chunk.first_row * width();
      cross_entropy_backward(chunk.rows, classes_, logits_.data() + chunk.first_row * classes_,
                             targets + chunk.first_row, shifts_and_logs_ + 2 * chunk.first_row, factor, logit_gradient);
      map_.add_weight_gradient(chunk.rows, {logit_gradient, classes_}, {input_.data_ptr<float>() + at, width()});
      map_.input_gradient(chunk.rows, {logit_gradient, classes_}, {workspace_->gradient.data() + at, width()});
    });
    input_.reset();
    return {workspace_->gradient_tensor(), {}};
  }

 private:
  std::size_t width() const { return workspace_->width; }

  std::shared_ptr<Workspace> workspace_;
  std::size_t classes_;
  LinearMap map_;
  StreamBuffer logits_;
  float* shifts_and_logs_;
  at::Tensor input_, targets_;
  std::int64_t asked_ = 0;  // tokens with a target
};

}  // namespace

std::unique_ptr<Segment> make_fused_embedding(const Config& config, const ParameterStore& store,
                                              std::shared_ptr<Workspace> workspace) {
  return std::make_unique<FusedEmbedding>(config, store, std::move(workspace));
}

std::unique_ptr<Segment> make_fused_final_norm(const Config& config, const ParameterStore& store,
                                               std::shared_ptr<Workspace> workspace) {
  return std::make_unique<FusedFinalNorm>(config, store, std::move(workspace));
}

std::unique_ptr<Segment> make_fused_head(const Config& config, const ParameterStore& store,
                                         std::shared_ptr<Workspace> workspace) {
  return std::make_unique<FusedHead>(config, store, std::move(workspace));
}

}  // namespace gradflow
