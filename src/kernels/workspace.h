#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "config/config.h"
#include "config/placements.h"
#include "kernels/arena.h"
#include "kernels/fetch_ahead.h"
#include "model/layout.h"
#include "model/parameter_store.h"
#include "model/segment.h"

namespace gradflow {

/// Some whole sequences of a micro-batch: as many rows (tokens) as go through a sub-layer together while everything
/// that they need stays in the second-level cache.
struct Chunk {
  std::size_t first_row = 0;
  std::size_t first_sequence = 0;
  std::size_t sequences = 0;
  std::size_t rows = 0;
};

/// A buffer of stream shape and the tensor through which others see it.
class StreamBuffer {
 public:
  StreamBuffer() = default;
  StreamBuffer(float* data, std::size_t width) : data_(data), width_(width) {}
  float* data() const { return data_; }
  /// [sequences, tokens, width], without a copy.
  const at::Tensor& tensor(std::size_t sequences, std::size_t tokens);

 private:
  float* data_ = nullptr;
  std::size_t width_ = 0;
  at::Tensor tensor_;
};

/// Of the largest micro-batch of a configuration.
struct WorkspaceSizes {
  /// The layout is that of `config`; it is only read under recompute.
  WorkspaceSizes(const Config& config, const Layout& layout);

  const std::size_t sequences, tokens, rows, width;
  const std::size_t chunk_rows;    ///< at most
  const std::size_t widest_inner;  ///< step of the widest of q, k and v together, feed-forward network, logits
  const std::size_t packed;        ///< floats for the weights of one segment, arranged for its products
  /// Blocks whose sub-layers keep something at the same time under recompute, where block l shares its buffers with
  /// block l + recompute_group; 0: without, every block has its own.
  const std::int64_t recompute_group;
};

/// Floats from row to row of a buffer `inner` wide that products read by columns: with a multiple of 512 bytes these
/// columns would share few sets of the first-level cache and drive each other out.
constexpr std::size_t wide_step(std::size_t inner) { return inner % 128 == 0 ? inner + 16 : inner; }

class Workspace;

/// Makes what one sub-layer keeps between forward and backward, each buffer under a name of its own.
class KeptBuffers {
 public:
  KeptBuffers(Workspace& workspace, std::int64_t block, SubLayerKind kind)
      : workspace_(workspace), block_(block), kind_(kind) {}
  float* floats(const std::string& name, std::size_t count);
  StreamBuffer stream(const std::string& name);

 private:
  Workspace& workspace_;
  std::int64_t block_;
  SubLayerKind kind_;
};

/// What all segments of one fused stack share: the memory, the sizes, and the buffers that hold nothing longer than one
/// segment runs.
class Workspace : public WorkspaceSizes {
 public:
  explicit Workspace(const Config& config);

  /// How many sequences and tokens the pass has. Throws std::logic_error when they are more than the buffers hold.
  void set_batch(const at::Tensor& tokens_of_batch);
  std::size_t batch_sequences() const { return batch_sequences_; }
  std::size_t batch_tokens() const { return batch_tokens_; }
  std::size_t batch_rows() const { return batch_sequences_ * batch_tokens_; }

  /// Of the micro-batch.
  Chunk first_chunk() const { return chunk_from(0); }
  /// Without rows behind the last.
  Chunk chunk_after(const Chunk& chunk) const { return chunk_from(chunk.first_sequence + chunk.sequences); }
  /// Calls body(chunk) for each chunk of the micro-batch.
  template <class Body>
  void for_each_chunk(const Body& body) const {
    for (Chunk chunk = first_chunk(); chunk.rows > 0; chunk = chunk_after(chunk)) body(chunk);
  }

  float* floats(std::size_t count) { return arena_.floats(count); }
  /// Bytes of all buffers so far.
  std::size_t bytes() const { return arena_.handed_out(); }
  /// `count` floats that a sub-layer keeps between forward and backward.
  float* kept(std::int64_t block, SubLayerKind kind, const std::string& name, std::size_t count);
  StreamBuffer stream() { return {floats(rows * width), width}; }

  /// The gradient of the stream, which every segment turns from that of its output into that of its input, in place.
  StreamBuffer gradient;
  /// That buffer holding `output_gradient`.
  float* take_gradient(const at::Tensor& output_gradient);
  const at::Tensor& gradient_tensor() { return gradient.tensor(batch_sequences_, batch_tokens_); }

  // What a watcher wants to see and nobody else: the two terms of the residual sum.
  StreamBuffer shown_skip, shown_branch;

  FetchAhead ahead;

  // Of one chunk.
  float *normed, *branch, *branch_gradient, *inner_gradient;  // [chunk_rows, width]
  float *wide, *wide_gradient;                                // [chunk_rows, widest_inner]
  float* attention;                                           // scratch of the attention kernels

  float* packed_weights;  // of the segment that runs: see WeightRoom

 private:
  Chunk chunk_from(std::size_t sequence) const {
    const std::size_t together = std::max<std::size_t>(1, chunk_rows / batch_tokens_);
    const std::size_t count = std::min(together, batch_sequences_ - sequence);
    return {sequence * batch_tokens_, sequence, count, count * batch_tokens_};
  }

  std::map<std::tuple<std::int64_t, SubLayerKind, std::string>, float*> shared_;  // block modulo the group
  Arena arena_;
  std::size_t batch_sequences_ = 0, batch_tokens_ = 0;
};

/// Hands out the workspace's room for the packed weights of one segment, map by map.
class WeightRoom {
 public:
  explicit WeightRoom(Workspace& workspace)
      : next_(workspace.packed_weights), end_(workspace.packed_weights + workspace.packed) {}
  /// Throws std::logic_error where the segment has more maps than the workspace was made for.
  float* take(std::size_t count);

 private:
  float *next_, *end_;
};

/// Where a parameter and its gradient lie; null where the model has no such parameter.
struct Parameter {
  Parameter() = default;
  Parameter(const ParameterStore& store, const std::string& name) {
    if (!store.has(name)) return;
    value = store.parameter(name).data_ptr<float>();
    gradient = store.gradient(name).data_ptr<float>();
  }
  explicit operator bool() const { return value != nullptr; }

  const float* value = nullptr;
  float* gradient = nullptr;
};

}  // namespace gradflow
