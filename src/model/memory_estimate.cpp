#include "model/memory_estimate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string_view>
#include <vector>

#include "config/derived.h"
#include "config/placements.h"
#include "core/memory.h"
#include "model/feedforward_layout.h"
#include "model/kept_tensors.h"

namespace gradflow {
namespace {

// Fitted to the peak resident set of runs with the CPU wheel of LibTorch 2.13 on x86-64 Linux: Transformers of depth 1
// to 1000 and width 16 to 256, float32, with and without recompute, AdamW and SGD, come out within 8 %, the other
// stacks and dtypes within 15 %.
constexpr double program_bytes = 1.45e8;
constexpr double bytes_a_tensor = 1.5e3;        // leaf, view of the gradient, name, entries of the tables
constexpr double bytes_a_saved_tensor = 0.7e3;  // while a checkpoint is written: its entry in the header
constexpr double bytes_a_segment = 8e3;         // what the recorder and the spike detectors remember
// Gaps between the tensors on the heap; under recompute most of what lies there comes and goes.
constexpr double heap_overhead = 1.13, heap_overhead_recomputed = 1.3;

constexpr double alignment = 64;

/// What a segment keeps between forward and backward, in bytes.
struct SegmentBytes {
  double input = 0;  ///< the stream that enters it
  double all = 0;    ///< the input among it
};
/// In the order of the forward pass; the head's input stands with the final norm.
using Kept = std::vector<SegmentBytes>;

bool has_factor(const ModelConfig& model) { return branch_factor(model) != 1 || model.branch_warmup > 0; }

/// Sizes of a Transformer's segments.
class TransformerSizes {
 public:
  explicit TransformerSizes(const Config& config)
      : config_(config),
        model_(config.model),
        tokens_(static_cast<double>(config.train.batch) * static_cast<double>(config.data.context)),
        width_(static_cast<double>(config.model.width)),
        stream_(tokens_ * width_) {}

  Kept kept() const {
    Kept out{embedding()};
    for (std::int64_t block = 1; block <= model_.depth; ++block)
      for (const SubLayerKind kind : {SubLayerKind::attention, SubLayerKind::ffn}) out.push_back(sublayer(block, kind));
    out.push_back(end());
    return out;
  }

 private:
  using Tensor = KeptTensors::Tensor;

  SegmentBytes embedding() const {
    KeptTensors tensors(config_);
    Tensor x = tensors.make(stream_);
    if (has_embedding_norm(model_)) x = tensors.norm(x, width_);
    tensors.dropout(x);
    return {0, tensors.bytes()};
  }

  /// The stream that enters a segment, and ResiDual's second one.
  Tensor input(KeptTensors& tensors) const {
    const Tensor x = tensors.make(stream_);
    tensors.keep(x);
    if (placement_row(model_.placement).second_stream) tensors.keep(tensors.make(stream_));
    return x;
  }

  SegmentBytes end() const {
    KeptTensors tensors(config_);
    const Tensor x = input(tensors);
    const double entering = tensors.bytes();
    if (has_final_norm(model_)) tensors.keep(tensors.norm(x, width_));
    return {entering, tensors.bytes()};
  }

  SegmentBytes sublayer(std::int64_t block, SubLayerKind kind) const {
    const SubLayerPlan& plan = sub_layer_plan(model_, block, kind);
    KeptTensors tensors(config_);
    const Tensor x = input(tensors);
    const double entering = tensors.bytes();
    const auto site = [&](bool present, Tensor at) { return present ? tensors.norm(at, width_) : at; };

    Tensor z = site(plan.norm_in, x);
    const Tensor skip = plan.skip_is_normed ? z : x;
    if (plan.input_scale == InputScale::inverse_sqrt_layer) z = tensors.like(z);
    Tensor f = kind == SubLayerKind::attention ? attention(tensors, plan, z) : ffn(tensors, plan, z);
    f = tensors.factor(tensors.dropout(site(plan.norm_branch, f)), has_factor(model_));
    site(plan.norm_out, tensors.joined(skip, f));
    return {entering, tensors.bytes()};
  }

  Tensor attention(KeptTensors& tensors, const SubLayerPlan& plan, Tensor z) const {
    const double heads = static_cast<double>(model_.heads), head_width = width_ / heads;
    const auto projected = [&](bool normed, Norm norm) {
      const Tensor p = tensors.linear(z, stream_);
      return normed ? tensors.norm(p, head_width, norm) : p;
    };
    const bool all = plan.norm_query_key_value;
    const Norm norm = all ? model_.norm : Norm::layernorm;
    const Tensor q = projected(all || model_.qk_norm, norm), k = projected(all || model_.qk_norm, norm),
                 v = projected(all, norm);
    Tensor y = tensors.make(stream_);
    if (padding_tokens(config_.data) == 0) {  // one operator: q, k, v, its output and a number a head and token
      for (const Tensor t : {q, k, v, y}) tensors.keep(t);
      tensors.keep_bytes(heads * tokens_ * parameter_element_bytes(config_.compute.dtype));
    } else {  // composed: q, k and v head by head, the softmax, the weights and the mask
      for (int copy = 0; copy < 3; ++copy) tensors.keep(tensors.make(stream_));
      const double scores = tokens_ * static_cast<double>(config_.data.context);
      for (int copy = 0; copy < 2; ++copy) tensors.keep(tensors.make(heads * scores));
      tensors.keep_bytes(scores);
    }
    // The output of attention has the layout of q. LayerNorm and BatchNorm leave q head by head, and putting the heads
    // together again is then a copy.
    const bool q_head_by_head = (all || model_.qk_norm) && (norm == Norm::layernorm || norm == Norm::batchnorm);
    if (plan.head_scale) tensors.keep(y);
    if (plan.head_scale || q_head_by_head) y = tensors.like(y);
    if (plan.inner_norm) y = tensors.norm(y, width_);
    return tensors.linear(y, stream_);
  }

  Tensor ffn(KeptTensors& tensors, const SubLayerPlan& plan, Tensor z) const {
    const double inner = static_cast<double>(model_.ffn_width.value());
    Tensor h = tensors.activation(tensors.linear(z, tokens_ * inner));
    if (plan.inner_norm) h = tensors.norm(h, inner);
    return tensors.linear(h, stream_);
  }

  const Config& config_;
  const ModelConfig& model_;
  double tokens_, width_, stream_;
};

/// Sizes of the segments of an mlp or resnet.
class FeedforwardSizes {
 public:
  explicit FeedforwardSizes(const Config& config)
      : config_(config), model_(config.model), images_(config.model.stack == StackKind::resnet) {}

  Kept kept() const {
    Kept out{stem()};
    for (std::int64_t block = 1; block <= model_.depth; ++block) out.push_back(this->block(block));
    out.push_back(end());
    return out;
  }

 private:
  using Tensor = KeptTensors::Tensor;

  bool is_post() const { return model_.placement == Placement::post; }

  /// Pixels of a sample behind a block; 1 for vectors.
  double pixels(std::int64_t block) const {
    if (!images_) return 1;
    std::int64_t side = config_.data.side;
    for (std::int64_t stage = block == 0 ? 0 : resnet_stage(model_, block); stage > 0; --stage) side = (side + 1) / 2;
    return static_cast<double>(side * side);
  }

  double batch() const { return static_cast<double>(config_.train.batch); }

  double stream(std::int64_t block) const {
    return batch() * static_cast<double>(stream_width(model_, block)) * pixels(block);
  }

  Tensor norm(KeptTensors& tensors, Tensor x) const { return tensors.norm(x, tensors.elements(x) / batch(), images_); }

  SegmentBytes stem() const {
    KeptTensors tensors(config_);
    Tensor x = tensors.linear(tensors.make(batch() * static_cast<double>(stem_inputs(config_)) * pixels(0)), stream(0));
    if (images_ && is_post()) x = tensors.activation(norm(tensors, x));
    tensors.dropout(x);
    return {0, tensors.bytes()};
  }

  SegmentBytes end() const {
    KeptTensors tensors(config_);
    Tensor x = tensors.make(stream(model_.depth));
    tensors.keep(x);
    const double entering = tensors.bytes();
    if (has_final_norm(model_)) x = norm(tensors, x);
    if (!is_post()) x = tensors.activation(x);
    if (!images_) tensors.keep(x);
    return {entering, tensors.bytes()};
  }

  SegmentBytes block(std::int64_t block) const {
    KeptTensors tensors(config_);
    const Tensor x = tensors.make(stream(block - 1));
    tensors.keep(x);
    const double entering = tensors.bytes();
    const bool two_layers = model_.block_layers == 2;
    Tensor f;
    if (is_post()) {
      f = norm(tensors, tensors.linear(x, stream(block)));
      if (two_layers) f = norm(tensors, tensors.linear(tensors.activation(f), stream(block)));
    } else {
      f = tensors.linear(tensors.activation(norm(tensors, x)), stream(block));
      if (two_layers) f = tensors.linear(tensors.activation(norm(tensors, f)), stream(block));
    }
    f = tensors.factor(tensors.dropout(f), has_factor(model_));
    const Tensor y = tensors.joined(stream(block) == stream(block - 1) ? x : tensors.make(stream(block)), f);
    if (is_post()) tensors.activation(y);
    return {entering, tensors.bytes()};
  }

  const Config& config_;
  const ModelConfig& model_;
  bool images_;
};

double parameter_bytes(const Config& config, const Layout& layout) {
  const double element = parameter_element_bytes(config.compute.dtype);
  const double aligned = alignment / element;
  double elements = 0, tensors = 0;
  for (const SegmentSpec& segment : layout.segments)
    for (const ParameterSpec& parameter : segment.parameters) {
      elements += std::ceil(static_cast<double>(parameter.size()) / aligned) * aligned;
      tensors += 1;
    }
  // Memory counts when it is touched.
  const double moments = moment_count(config.train);
  return (2 + moments) * elements * element + tensors * (bytes_a_tensor + (1 + moments) * bytes_a_saved_tensor) +
         static_cast<double>(layout.segments.size()) * bytes_a_segment;
}

/// Under bfloat16 every matrix is rounded from the master weights when it is used, and kept.
void add_rounded_weights(const Layout& layout, Kept& kept) {
  for (std::size_t s = 0; s < layout.segments.size(); ++s)
    for (const ParameterSpec& parameter : layout.segments[s].parameters)
      if (parameter.decays()) kept[std::min(s, kept.size() - 1)].all += 2 * static_cast<double>(parameter.size());
}

Kept segment_bytes(const Config& config, const Layout& layout) {
  Kept kept =
      config.model.stack == StackKind::transformer ? TransformerSizes(config).kept() : FeedforwardSizes(config).kept();
  if (config.compute.dtype == Dtype::bfloat16) add_rounded_weights(layout, kept);
  return kept;
}

/// What one layer (attention and feed-forward of a block) keeps between forward and backward: all of its segments, or
/// the input of the first.
Kept layers_of(const Kept& segments, const Layout& layout) {
  Kept layers;
  for (std::size_t s = 0; s < segments.size(); ++s) {
    if (layout.starts_layer(s)) layers.push_back({.input = segments[s].input});
    layers.back().all += segments[s].all;
  }
  return layers;
}

double sum_of(const Kept& kept) {
  double sum = 0;
  for (const SegmentBytes& part : kept) sum += part.all;
  return sum;
}

double largest_of(const Kept& kept) {
  double largest = 0;
  for (const SegmentBytes& part : kept) largest = std::max(largest, part.all);
  return largest;
}

/// What layers in groups keep under recompute.
struct GroupBytes {
  double inputs = 0;   ///< what enters the groups
  double largest = 0;  ///< of a group, all but its input
  double last = 0;
};

GroupBytes in_groups(const Kept& layers, std::size_t size) {
  GroupBytes bytes;
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    if (layer % size == 0) {
      bytes.inputs += layers[layer].input;
      bytes.last = -layers[layer].input;
    }
    bytes.last += layers[layer].all;
    bytes.largest = std::max(bytes.largest, bytes.last);
  }
  return bytes;
}

/// The smallest group with which little more is kept than with the best: around that one next to nothing changes, and
/// the inside of a small group stays nearer to the processor (src/kernels/README.md).
std::size_t group_size(const Kept& layers) {
  constexpr double little_more = 1.3;  // half of the best size is still good
  const auto kept = [&](std::size_t size) {
    const GroupBytes bytes = in_groups(layers, size);
    return bytes.inputs + bytes.largest;
  };
  // A layer keeps its input at least, so nothing is won by groups of more than the root of their number.
  double least = kept(1);
  for (std::size_t size = 2; size * size <= layers.size(); ++size) least = std::min(least, kept(size));
  std::size_t size = 1;
  while (kept(size) > little_more * least) ++size;
  return size;
}

GroupBytes in_groups(const Kept& segments, const Layout& layout) {
  const Kept layers = layers_of(segments, layout);
  return in_groups(layers, group_size(layers));
}

double activation_bytes(const Config& config, const Layout& layout) {
  const Kept segments = segment_bytes(config, layout);
  // In the backward pass of a segment the gradients of what it kept pass by, about as many bytes again; under recompute
  // a whole group of layers is kept meanwhile.
  if (!config.compute.recompute) return heap_overhead * (sum_of(segments) + largest_of(segments));
  const GroupBytes groups = in_groups(segments, layout);
  return heap_overhead_recomputed * (groups.inputs + groups.largest + largest_of(segments));
}

double data_bytes(const DataConfig& data) {
  double bytes = 0;
  for (const std::string& path : data.files) {
    std::error_code missing;
    const std::uintmax_t size = std::filesystem::file_size(path, missing);
    if (!missing) bytes += static_cast<double>(size);
  }
  // Characters are held as four bytes each, beside the text that they are read from.
  return data.tokenizer == Tokenizer::byte ? 2 * bytes : 5 * bytes;
}

}  // namespace

double kept_bytes(const Config& config, const Layout& layout) {
  const Kept segments = segment_bytes(config, layout);
  if (!config.compute.recompute) return sum_of(segments);
  const GroupBytes groups = in_groups(segments, layout);
  return groups.inputs + groups.last;
}

std::int64_t recompute_group(const Config& config, const Layout& layout) {
  return static_cast<std::int64_t>(group_size(layers_of(segment_bytes(config, layout), layout)));
}

double logit_bytes(const Config& config) {
  const double batch = static_cast<double>(config.train.batch);
  const double outputs =
      config.model.stack == StackKind::transformer
          ? static_cast<double>(config.data.context) * static_cast<double>(config.data.vocabulary.value())
          : static_cast<double>(head_outputs(config));
  return batch * outputs * parameter_element_bytes(config.compute.dtype);
}

MemoryEstimate memory_estimate(const Config& config, const Layout& layout) {
  return {.program = program_bytes,
          .parameters = parameter_bytes(config, layout),
          .activations = activation_bytes(config, layout),
          .logits = 3 * logit_bytes(config),  // log-probabilities, their gradient and that of the logits
          .data = data_bytes(config.data)};
}

std::optional<std::string> memory_fault(const Config& config, const MemoryEstimate& estimate, std::int64_t available) {
  if (estimate.total() <= static_cast<double>(available)) return std::nullopt;
  const bool activations_rule = estimate.activations > estimate.parameters;
  const std::string_view remedy =
      activations_rule && !config.compute.recompute
          ? "set compute.recompute to true, or lower train.batch, model.depth or model.width"
      : activations_rule ? "lower train.batch, model.depth or model.width"
                         : "lower model.depth or model.width";
  return fmt::format("the run needs about {} of memory and {} are available; {}", bytes_in_words(estimate.total()),
                     bytes_in_words(static_cast<double>(available)), remedy);
}

}  // namespace gradflow
