#include "kernels/workspace.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "kernels/attention.h"
#include "kernels/linear_map.h"
#include "model/memory_estimate.h"

namespace gradflow {
namespace {

struct Widths {
  explicit Widths(const Config& config)
      : stream(static_cast<std::size_t>(config.model.width)),
        inner(static_cast<std::size_t>(config.model.ffn_width.value())),
        classes(static_cast<std::size_t>(config.data.vocabulary.value())) {}
  std::size_t stream, inner, classes;
};

std::size_t widest_step(const Widths& w) { return std::max({3 * w.stream, wide_step(w.inner), w.classes}); }

std::size_t most_packed(const Widths& w) {
  const auto qkv =
      std::max(LinearMap::packed_size(w.stream, 3 * w.stream), 3 * LinearMap::packed_size(w.stream, w.stream));
  const auto attention = qkv + LinearMap::packed_size(w.stream, w.stream);
  const auto ffn = LinearMap::packed_size(w.stream, w.inner) + LinearMap::packed_size(w.inner, w.stream);
  return std::max({attention, ffn, LinearMap::packed_size(w.stream, w.classes)});
}

/// Rows for which what a sub-layer works on stays in a second-level cache of 1 to 2 MB. Our own product is as fast with
/// few; a BLAS is slow with fewer, in weight gradients above all. Where such a gradient fills the cache by itself, what
/// counts is how often it is gone through. Measured: src/kernels/README.md.
std::size_t rows_in_cache(const Widths& w) {
  if (w.stream > 128) return 512;
  const bool own_products = LinearMap::packed_size(w.stream, w.inner) > 0;
  if (own_products && w.stream > 32) return 64;
  return w.stream <= 64 ? 256 : 128;
}

std::size_t rows_of_chunk(const Config& config) {
  const auto tokens = static_cast<std::size_t>(config.data.context);
  return std::max<std::size_t>(1, rows_in_cache(Widths(config)) / tokens) * tokens;
}

}  // namespace

const at::Tensor& StreamBuffer::tensor(std::size_t sequences, std::size_t tokens) {
  const auto b = static_cast<std::int64_t>(sequences), t = static_cast<std::int64_t>(tokens);
  if (!tensor_.defined() || tensor_.size(0) != b || tensor_.size(1) != t)
    tensor_ = at::from_blob(data_, {b, t, static_cast<std::int64_t>(width_)}, at::kFloat);
  return tensor_;
}

WorkspaceSizes::WorkspaceSizes(const Config& config, const Layout& layout)
    : sequences(static_cast<std::size_t>(config.train.batch)),
      tokens(static_cast<std::size_t>(config.data.context)),
      rows(sequences * tokens),
      width(static_cast<std::size_t>(config.model.width)),
      chunk_rows(std::min(rows, rows_of_chunk(config))),
      widest_inner(widest_step(Widths(config))),
      packed(most_packed(Widths(config))),
      recompute_group(config.compute.recompute ? gradflow::recompute_group(config, layout) : 0) {}

float* KeptBuffers::floats(const std::string& name, std::size_t count) {
  return workspace_.kept(block_, kind_, name, count);
}

StreamBuffer KeptBuffers::stream(const std::string& name) {
  return {floats(name, workspace_.rows * workspace_.width), workspace_.width};
}

Workspace::Workspace(const Config& config)
    : WorkspaceSizes(config, config.compute.recompute ? make_layout(config) : Layout()) {
  gradient = stream();
  shown_skip = stream();
  shown_branch = stream();
  for (float** buffer : {&normed, &branch, &branch_gradient, &inner_gradient}) *buffer = floats(chunk_rows * width);
  wide = floats(chunk_rows * widest_inner);
  wide_gradient = floats(chunk_rows * widest_inner);
  const AttentionShape shape{.sequences = 1,
                             .tokens = tokens,
                             .width = width,
                             .heads = static_cast<std::size_t>(config.model.heads),
                             .causal = config.model.causal};
  attention = floats(shape.scratch_size());
  packed_weights = floats(packed);
}

void Workspace::set_batch(const at::Tensor& tokens_of_batch) {
  batch_sequences_ = static_cast<std::size_t>(tokens_of_batch.size(0));
  batch_tokens_ = static_cast<std::size_t>(tokens_of_batch.size(1));
  if (batch_sequences_ > sequences || batch_tokens_ > tokens)
    throw std::logic_error("a micro-batch larger than the configuration's");
}

float* Workspace::kept(std::int64_t block, SubLayerKind kind, const std::string& name, std::size_t count) {
  if (recompute_group == 0) return floats(count);
  float*& buffer = shared_[{block % recompute_group, kind, name}];
  if (buffer == nullptr) buffer = floats(count);
  return buffer;
}

float* WeightRoom::take(std::size_t count) {
  if (count > static_cast<std::size_t>(end_ - next_)) throw std::logic_error("no room for a segment's packed weights");
  return std::exchange(next_, next_ + count);
}

float* Workspace::take_gradient(const at::Tensor& output_gradient) {
  if (output_gradient.data_ptr<float>() != gradient.data()) {
    const at::Tensor& own = gradient_tensor();
    own.copy_(output_gradient);
  }
  return gradient.data();
}

}  // namespace gradflow
