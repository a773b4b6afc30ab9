#include "kernels/sub_layer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "config/derived.h"
#include "kernels/elementwise.h"

namespace gradflow {
namespace {

double constant_skip_scale(const ModelConfig& model, SkipScale scale) {
  switch (scale) {
    case SkipScale::deepnorm_alpha: return deepnorm_alpha(model);
    case SkipScale::keel_alpha: return keel_alpha(model);
    case SkipScale::one:
    case SkipScale::learned_admin: break;
  }
  return 1;
}

}  // namespace

FusedSubLayer::FusedSubLayer(const Config& config, const ParameterStore& store, std::shared_ptr<Workspace> workspace,
                             std::int64_t block, SubLayerKind kind, std::size_t segment)
    : model_(config.model), workspace_(std::move(workspace)), block_(block), width_(workspace_->width) {
  const std::string prefix = fmt::format("block.{}.{}", block, kind == SubLayerKind::attention ? "attention" : "ffn");
  const SubLayerPlan& plan = sub_layer_plan(model_, block, kind);
  const std::size_t rows = workspace_->rows;
  KeptBuffers kept(*workspace_, block, kind);
  const auto slot = [&](bool present, const char* name, float scale) {
    return present && model_.norm != Norm::none
               ? NormSlot(store, prefix + "." + name, model_, scale, kept.floats(name, 2 * rows))
               : NormSlot();
  };
  input_scale_ = plan.input_scale == InputScale::inverse_sqrt_layer
                     ? static_cast<float>(1 / std::sqrt(static_cast<double>(block)))
                     : 1;
  norm_in_ = slot(plan.norm_in, "norm_in", input_scale_);
  norm_branch_ = slot(plan.norm_branch, "norm_branch", 1);
  norm_out_ = slot(plan.norm_out, "norm_out", 1);

  double skip = constant_skip_scale(model_, plan.skip_scale);
  switch (model_.residual) {
    case Residual::none: skip = 0; break;
    case Residual::sqrt2:
      skip /= std::numbers::sqrt2;
      constant_branch_ = static_cast<float>(1 / std::numbers::sqrt2);
      break;
    case Residual::scaled:
    case Residual::rezero: learned_ = Parameter(store, prefix + ".residual.scale"); break;
    default: break;
  }
  skip_factor_ = static_cast<float>(skip);
  branch_ = make_branch(config, store, *workspace_, kept, kind, prefix);
  maps_ = branch_->maps();
  for (std::size_t e = store.first_entry(segment); e < store.first_entry(segment + 1); ++e) {
    const ParameterStore::Entry& entry = store.entries()[e];
    const std::span gradient(Parameter(store, entry.name).gradient, static_cast<std::size_t>(entry.size));
    if (std::ranges::none_of(maps_, [&](const LinearMap* map) { return map->has_gradient(gradient.data()); }))
      other_gradients_.push_back(gradient);
  }

  output_ = kept.stream("output");
  if (norm_out_) sum_ = kept.stream("sum");
  if (norm_branch_) before_norm_branch_ = kept.floats("before_norm_branch", rows * width_);
  if (learned_) term_ = kept.floats("term", rows * width_);
}

Stream FusedSubLayer::forward(const Stream& input, const Pass& pass, Inside* inside) {
  workspace_->set_batch(pass.batch->inputs);
  branch_->begin_forward(*pass.batch);
  input_ = input.x;
  fixed_factor_ =
      constant_branch_ * static_cast<float>(branch_factor(model_) * branch_warmup_factor(model_, pass.step, block_));
  branch_factor_ = fixed_factor_ * (learned_ ? *learned_.value : 1);
  const bool terms_wanted = pass.taps.residual_terms || pass.batch->real.defined();
  shown_ = inside == nullptr || !has_skip() ? Terms::nothing : terms_wanted ? Terms::tensors : Terms::squares;
  branch_squares_ = 0;
  workspace_->for_each_chunk([&](const Chunk& chunk) { forward(chunk); });
  if (inside != nullptr) fill(*inside);
  if (!pass.keep) input_.reset();
  return {output_.tensor(workspace_->batch_sequences(), workspace_->batch_tokens()), {}};
}

const float* FusedSubLayer::entering(const Chunk& chunk, const float* x, bool again) const {
  float* const z = workspace_->normed;
  if (norm_in_) {
    again ? norm_in_.again(chunk, x, z) : norm_in_.forward(chunk, x, z);
    return z;
  }
  if (input_scale_ == 1) return x;
  scale(chunk.rows * width_, input_scale_, x, z);
  return z;
}

const float* FusedSubLayer::transform(const Chunk& chunk, const float* z, float*& f) {
  const std::size_t at = chunk.first_row * width_;
  const Parameter& bias = branch_->out_bias();
  f = term_ != nullptr ? term_ + at : workspace_->branch;
  float* const raw = norm_branch_ ? before_norm_branch_ + at : f;
  branch_->inner(chunk, z);
  fetch_after_forward(chunk, raw);
  branch_->out(chunk, raw);
  if (!norm_branch_ && term_ == nullptr) return bias.value;
  if (bias) add_bias(chunk.rows, width_, bias.value, raw);
  if (norm_branch_) norm_branch_.forward(chunk, raw, f);
  return nullptr;
}

void FusedSubLayer::forward(const Chunk& chunk) {
  const std::size_t at = chunk.first_row * width_;
  const float* const x = input_.data_ptr<float>() + at;
  float* f = nullptr;
  const float* const bias = transform(chunk, entering(chunk, x, /*again=*/false), f);
  float* const output = output_.data() + at;
  float* const y = norm_out_ ? sum_.data() + at : output;
  ShownTerms shown;
  if (shown_ == Terms::squares) shown.branch_squares = &branch_squares_;
  if (shown_ == Terms::tensors) {
    if (skip_factor_ != 1) shown.skip = workspace_->shown_skip.data() + at;
    shown.branch = workspace_->shown_branch.data() + at;
  }
  residual_sum({.rows = chunk.rows, .width = width_, .skip_factor = skip_factor_, .branch_factor = branch_factor_},
               has_skip() ? x : nullptr, f, bias, y, shown);
  if (norm_out_) norm_out_.forward(chunk, y, output);
}

void FusedSubLayer::fetch_after_forward(const Chunk& chunk, const float* raw) const {
  FetchAhead& ahead = workspace_->ahead;
  const std::size_t count = chunk.rows * width_;
  ahead.restart();
  if (raw != workspace_->branch) ahead.add(raw, count);
  ahead.add((norm_out_ ? sum_ : output_).data() + chunk.first_row * width_, count);
  if (const Chunk following = workspace_->chunk_after(chunk); following.rows > 0)
    return branch_->fetch_written(following);
  if (next_ == nullptr) return;
  next_->branch_->fetch_weights();
  next_->branch_->fetch_written(workspace_->first_chunk());
}

void FusedSubLayer::fetch_after_backward(const Chunk& chunk) const {
  if (const Chunk following = workspace_->chunk_after(chunk); following.rows > 0) return fetch_kept(following);
  if (previous_ != nullptr) previous_->fetch_kept(workspace_->first_chunk());
}

void FusedSubLayer::fetch_kept(const Chunk& chunk) const {
  if (!input_.defined()) return;  // under recompute, its forward pass comes again
  const std::size_t at = chunk.first_row * width_, count = chunk.rows * width_;
  if (norm_out_) workspace_->ahead.add(sum_.data() + at, count);
  for (const float* kept : {term_, before_norm_branch_})
    if (kept != nullptr) workspace_->ahead.add(kept + at, count);
  workspace_->ahead.add(input_.data_ptr<float>() + at, count);
  branch_->fetch_kept(chunk);
}

void FusedSubLayer::fill(Inside& inside) {
  const auto tensor = [&](StreamBuffer& buffer) {
    return buffer.tensor(workspace_->batch_sequences(), workspace_->batch_tokens());
  };
  if (norm_out_)
    inside.norm_input = tensor(sum_);
  else if (norm_in_)
    inside.norm_input = input_;
  if (shown_ == Terms::squares) inside.branch_squares = branch_squares_;
  if (shown_ != Terms::tensors) return;
  inside.skip = skip_factor_ == 1 ? input_ : tensor(workspace_->shown_skip);
  inside.branch = tensor(workspace_->shown_branch);
}

bool FusedSubLayer::set_gradients_next() {
  for (LinearMap* map : maps_) map->set_gradient();
  for (const std::span<float> gradient : other_gradients_) std::ranges::fill(gradient, 0.0f);
  return true;
}

Stream FusedSubLayer::backward(const Stream& output_gradient) {
  float* const gradient = workspace_->take_gradient(output_gradient.x);
  scalar_gradient_ = 0;
  branch_->begin_backward();
  workspace_->for_each_chunk([&](const Chunk& chunk) { backward(chunk, gradient + chunk.first_row * width_); });
  if (learned_) *learned_.gradient += static_cast<float>(scalar_gradient_);
  input_.reset();
  return {workspace_->gradient_tensor(), {}};
}

void FusedSubLayer::backward(const Chunk& chunk, float* gradient) {
  const std::size_t at = chunk.first_row * width_, count = chunk.rows * width_;
  const float* const x = input_.data_ptr<float>() + at;
  if (norm_out_) norm_out_.backward(chunk, gradient, sum_.data() + at, 0, gradient);  // dL/dy from here on
  if (learned_) scalar_gradient_ += static_cast<double>(fixed_factor_) * dot(count, gradient, term_ + at);

  float* const own = workspace_->branch_gradient;
  const float* df = gradient;
  if (branch_factor_ != 1) {
    scale(count, branch_factor_, gradient, own);
    df = own;
  }
  if (norm_branch_) {
    norm_branch_.backward(chunk, df, before_norm_branch_ + at, 0, own);
    df = own;
  }
  if (branch_->out_bias()) add_column_sums(chunk.rows, width_, df, width_, branch_->out_bias().gradient);

  const float* const z = entering(chunk, x, /*again=*/true);
  float* const dz = workspace_->branch;
  workspace_->ahead.restart();
  branch_->out_backward(chunk, df);
  fetch_after_backward(chunk);
  branch_->inner_backward(chunk, z, dz);
  if (norm_in_)
    norm_in_.backward(chunk, dz, x, skip_factor_, gradient);
  else
    scaled_add(count, skip_factor_, input_scale_, dz, gradient);
}

}  // namespace gradflow
