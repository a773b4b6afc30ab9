#include "model/feedforward_stack.h"

#include <string>

#include "config/derived.h"
#include "model/feedforward_layout.h"
#include "model/norm.h"
#include "model/parts.h"

namespace gradflow {
namespace {

/// Weight layers and norms on vectors [B, d] or images [B, C, H, W], whichever the stack carries.
class Kind {
 public:
  explicit Kind(const Config& config) : images_(config.model.stack == StackKind::resnet) {}

  bool images() const { return images_; }
  at::Tensor norm(const NormSite& site, const at::Tensor& x, const Pass& pass) const {
    return images_ ? site.image(x, pass) : site(x, pass);
  }

 private:
  bool images_;
};

/// A dense layer [B, in] → [B, out], or a 3×3 convolution that keeps the side, or halves it with stride 2.
class WeightLayer {
 public:
  WeightLayer() = default;
  WeightLayer(const ParameterStore& store, const std::string& prefix, const Kind& kind, std::int64_t stride = 1)
      : stride_(stride) {
    if (kind.images())
      kernel_ = store.parameter(prefix + ".weight");
    else
      dense_ = Linear(store, prefix);
  }
  at::Tensor operator()(const at::Tensor& x) const {
    if (!kernel_.defined()) return dense_(x);
    return at::conv2d(x, kernel_.to(x.scalar_type()), {}, stride_, /*padding=*/1);
  }

 private:
  std::int64_t stride_ = 1;
  at::Tensor kernel_;
  Linear dense_;
};

NormSite norm_site(const Config& config, const ParameterStore& store, const std::string& prefix) {
  return NormSite(store, prefix, config.model.norm, config.model.norm_epsilon);
}

Dropout dropout_site(const Config& config, const std::string& site) {
  return Dropout(config.model.dropout, static_cast<std::uint64_t>(config.seed), site, config.train.accumulation);
}

/// Inputs of the batch → stream: one weight layer; in a resnet v1 followed by norm and activation.
class Stem final : public AtenSegment {
 public:
  Stem(const Config& config, const ParameterStore& store)
      : kind_(config),
        dtype_(activation_dtype(config.compute.dtype)),
        layer_(store, "stem", kind_),
        activated_(kind_.images() && config.model.placement == Placement::post),
        activation_(config.model.activation),
        dropout_(dropout_site(config, "stem")) {
    if (activated_) norm_ = norm_site(config, store, "stem.norm");
  }

 protected:
  Stream compute(const Stream&, const Pass& pass, Inside* inside) override {
    const at::Tensor inputs = pass.batch->inputs.to(dtype_);
    at::Tensor x = layer_(kind_.images() ? inputs : inputs.flatten(1));
    if (norm_ && inside != nullptr) inside->norm_input = x;
    if (activated_) x = activate(kind_.norm(norm_, x, pass), activation_);
    return {dropout_(x, pass), {}};
  }

 private:
  Kind kind_;
  at::ScalarType dtype_;
  WeightLayer layer_;
  bool activated_;
  Activation activation_;
  NormSite norm_;
  Dropout dropout_;
};

/// One block: x → x'. A norm stands at the entrance of the branch (`pre`) or inside it, never behind the sum.
class Block final : public AtenSegment {
 public:
  Block(const Config& config, const ParameterStore& store, std::int64_t block, const std::string& prefix)
      : kind_(config),
        model_(config.model),
        block_(block),
        stride_(stream_width(model_, block) == stream_width(model_, block - 1) ? 1 : 2),
        in_(store, prefix + ".in", kind_, stride_),
        norm_1_(norm_site(config, store, prefix + ".norm_1")),
        residual_(store, prefix + ".residual", model_.residual),
        dropout_(dropout_site(config, prefix)) {
    if (model_.block_layers == 2) {
      out_ = WeightLayer(store, prefix + ".out", kind_);
      norm_2_ = norm_site(config, store, prefix + ".norm_2");
    }
  }

 protected:
  Stream compute(const Stream& input, const Pass& pass, Inside* inside) override {
    const at::Tensor& x = input.x;
    const bool post = model_.placement == Placement::post;
    at::Tensor f = dropout_(post ? post_branch(x, pass, inside) : pre_branch(x, pass, inside), pass);
    const double factor = branch_factor(model_) * branch_warmup_factor(model_, pass.step, block_);
    if (factor != 1) f = f * factor;

    const ResidualForm::Sum sum = residual_(shortcut(noted_skip(x, pass)), f);
    if (!sum.skip.defined()) forget_skip();
    const at::Tensor y = post ? activate(sum.y, model_.activation) : sum.y;
    if (inside != nullptr) {
      if (norm_1_ && !post) inside->norm_input = x;
      inside->skip = sum.skip;
      if (sum.skip.defined()) inside->branch = sum.branch;
      if (pass.taps.activation && post && model_.block_layers == 1) inside->activation = y;
    }
    return {y, {}};
  }

 private:
  at::Tensor post_branch(const at::Tensor& x, const Pass& pass, Inside* inside) const {
    const at::Tensor first = in_(x);
    if (model_.block_layers == 1) {
      show_ends(x, first, pass, inside);
      return kind_.norm(norm_1_, first, pass);
    }
    const at::Tensor hidden = activate(kind_.norm(norm_1_, first, pass), model_.activation);
    const at::Tensor second = out_(hidden);
    show_ends(x, second, pass, inside);
    show_activation(hidden, pass, inside);
    return kind_.norm(norm_2_, second, pass);
  }

  at::Tensor pre_branch(const at::Tensor& x, const Pass& pass, Inside* inside) const {
    const at::Tensor z = kind_.norm(norm_1_, x, pass);
    at::Tensor hidden = activate(z, model_.activation);
    at::Tensor f = in_(hidden);
    if (model_.block_layers == 2) {
      hidden = activate(kind_.norm(norm_2_, f, pass), model_.activation);
      f = out_(hidden);
    }
    show_ends(z, f, pass, inside);
    show_activation(hidden, pass, inside);
    return f;
  }

  static void show_ends(const at::Tensor& input, const at::Tensor& output, const Pass& pass, Inside* inside) {
    if (inside != nullptr && pass.taps.branch_ends) inside->branch_input = input, inside->branch_output = output;
  }
  static void show_activation(const at::Tensor& hidden, const Pass& pass, Inside* inside) {
    if (inside != nullptr && pass.taps.activation) inside->activation = hidden;
  }

  /// The identity; where the width doubles every second row and column, with channels of zeros appended (He et al.
  /// 2015, option A).
  at::Tensor shortcut(const at::Tensor& x) const {
    if (stride_ == 1) return x;
    const at::Tensor sampled = x.slice(2, 0, std::nullopt, stride_).slice(3, 0, std::nullopt, stride_);
    return at::constant_pad_nd(sampled, {0, 0, 0, 0, 0, stream_width(model_, block_) - x.size(1)});
  }

  Kind kind_;
  ModelConfig model_;
  std::int64_t block_;
  std::int64_t stride_;
  WeightLayer in_, out_;
  NormSite norm_1_, norm_2_;
  ResidualForm residual_;
  Dropout dropout_;
};

class FinalNorm final : public AtenSegment {
 public:
  FinalNorm(const Config& config, const ParameterStore& store)
      : kind_(config), norm_(norm_site(config, store, "final_norm")) {}

 protected:
  Stream compute(const Stream& input, const Pass& pass, Inside* inside) override {
    if (inside != nullptr) inside->norm_input = input.x;
    return {kind_.norm(norm_, input.x, pass), {}};
  }

 private:
  Kind kind_;
  NormSite norm_;
};

/// The last activation of `pre`, the mean over the image, logits [B, outputs] = h·Wᵀ + b and the loss: cross-entropy in
/// nats for targets that are classes, else the mean squared error over samples and features.
class Head final : public AtenSegment {
 public:
  Head(const Config& config, const ParameterStore& store)
      : kind_(config),
        activation_(config.model.placement == Placement::pre ? config.model.activation : Activation::identity),
        layer_(store, "head") {}

 protected:
  Stream compute(const Stream& input, const Pass& pass, Inside* inside) override {
    at::Tensor h = activate(input.x, activation_);
    if (kind_.images()) h = h.mean({2, 3});
    at::Tensor logits = layer_(h);
    if (logits.scalar_type() == at::kBFloat16) logits = logits.to(at::kFloat);
    if (inside != nullptr) inside->logits = logits;
    const at::Tensor& targets = pass.batch->targets;
    return {targets.is_floating_point() ? (logits - targets.to(logits.scalar_type())).square().mean()
                                        : at::cross_entropy_loss(logits, targets),
            {}};
  }

 private:
  Kind kind_;
  Activation activation_;
  Linear layer_;
};

}  // namespace

std::vector<std::unique_ptr<Segment>> make_feedforward_stack(const Config& config, const ParameterStore& store) {
  const std::string sublayer = block_sublayer(config.model.stack);
  std::vector<std::unique_ptr<Segment>> segments;
  segments.push_back(std::make_unique<Stem>(config, store));
  for (std::int64_t block = 1; block <= config.model.depth; ++block)
    segments.push_back(
        std::make_unique<Block>(config, store, block, "block." + std::to_string(block) + "." + sublayer));
  if (has_final_norm(config.model)) segments.push_back(std::make_unique<FinalNorm>(config, store));
  segments.push_back(std::make_unique<Head>(config, store));
  return segments;
}

}  // namespace gradflow
