#pragma once

#include <cstdint>

#include "model/batch.h"
#include "model/tensor.h"

namespace gradflow {

/// What flows between segments: x [B, T, d] (or [B, d], [B, C, H, W]); and, where the model has one, a second tensor of
/// the same shape (ResiDual's sum of branches, B2T's block input). The last segment's x is the scalar loss.
struct Stream {
  at::Tensor x;
  at::Tensor second;
};

/// How one micro-batch is run.
struct Pass {
  const Batch* batch = nullptr;
  std::int64_t step = 1;          ///< update this pass belongs to, from 1 (branch warm-up, dropout masks)
  std::int64_t micro = 0;         ///< micro-batch within the step, from 0 (dropout masks)
  bool training = true;           ///< dropout on, BatchNorm over the batch; else running statistics
  bool keep = true;               ///< a backward will follow
  bool recompute = false;         ///< the stack keeps only the inputs of blocks and runs them again in backward
  bool update_statistics = true;  ///< BatchNorm's running statistics; never twice for one micro-batch
};

/// What a sub-layer holds between its two ends, shown to a watcher after its forward. Undefined: it has no such thing.
struct Inside {
  at::Tensor norm_input;  ///< what enters norm_out, else norm_in
  at::Tensor skip;        ///< the skip term of the sum (α·x, z, …)
  at::Tensor branch;      ///< the term that the branch adds to the skip (f, a·f, λ⊙f, f/√2, t⊙f, …)
  at::Tensor logits;      ///< head only
};

/// A piece of a stack between two places where we look: embedding, one sub-layer, final norm, head with the loss.
class Segment {
 public:
  virtual ~Segment() = default;
  /// Keeps what its backward needs until then. Fills `inside` when given; its tensors carry no graph.
  virtual Stream forward(const Stream& input, const Pass& pass, Inside* inside) = 0;
  /// dL/d(output) in, dL/d(input) out, for the last forward that was told to keep; adds parameter gradients into the
  /// store.
  virtual Stream backward(const Stream& output_gradient) = 0;
};

/// The reference backend: `compute` is written with LibTorch operators, and autograd runs over this one segment, from a
/// leaf at its input to its output. Any device, any dtype, every model.
class AtenSegment : public Segment {
 public:
  Stream forward(const Stream& input, const Pass& pass, Inside* inside) final;
  Stream backward(const Stream& output_gradient) final;

 protected:
  virtual Stream compute(const Stream& input, const Pass& pass, Inside* inside) = 0;

 private:
  Stream input_;   // leaves
  Stream output_;  // with graph
};

}  // namespace gradflow
