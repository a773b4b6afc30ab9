#include "kernels/workspace.h"

#include <algorithm>
#include <stdexcept>

#include "kernels/attention.h"
#include "model/memory_estimate.h"

namespace gradflow {
namespace {

std::size_t inner_width(const Config& config) {
  const auto width = static_cast<std::size_t>(config.model.width);
  return std::max({3 * width, static_cast<std::size_t>(config.model.ffn_width.value()),
                   static_cast<std::size_t>(config.data.vocabulary.value())});
}

/// Rows for which what a sub-layer works on stays in a second-level cache of 1 to 2 MB. Fewer make the products slow,
/// those of the weight gradients above all; and where such a gradient fills the cache by itself, what counts is how
/// often it is gone through. Measured: src/kernels/README.md.
std::size_t rows_in_cache(std::size_t width) { return width <= 64 ? 256 : width <= 128 ? 128 : 512; }

std::size_t rows_of_chunk(const Config& config) {
  const auto tokens = static_cast<std::size_t>(config.data.context);
  return std::max<std::size_t>(1, rows_in_cache(static_cast<std::size_t>(config.model.width)) / tokens) * tokens;
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
      widest_inner(inner_width(config)),
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

float* Workspace::take_gradient(const at::Tensor& output_gradient) {
  if (output_gradient.data_ptr<float>() != gradient.data()) {
    const at::Tensor& own = gradient_tensor();
    own.copy_(output_gradient);
  }
  return gradient.data();
}

}  // namespace gradflow
