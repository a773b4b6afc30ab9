#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/batch.h"
#include "model/tensor.h"

namespace gradflow {

/// What flows between segments: x [B, T, d] (or [B, d], [B, C, H, W]); and, where the model has one, a second tensor of
/// the same shape (ResiDual's sum of branches, B2T's block input). The last segment's x is the scalar loss.
struct Stream {
  at::Tensor x;
  at::Tensor second;
};

/// What is shown of the insides of a sub-layer only to who asks: it costs time, and all but the first only the
/// reference backend has.
struct Taps {
  bool residual_terms = false;  ///< skip and branch as tensors, where a backend else only adds up their squares
  bool branch_ends = false;     ///< what enters F and what leaves it
  bool attention = false;       ///< queries and keys
  bool activation = false;      ///< what the activation inside the branch puts out
  bool skip_gradient = false;   ///< the part of the gradient that passes through the skip

  Taps& operator|=(const Taps& other) {
    residual_terms |= other.residual_terms;
    branch_ends |= other.branch_ends;
    attention |= other.attention;
    activation |= other.activation;
    skip_gradient |= other.skip_gradient;
    return *this;
  }
};

/// How one micro-batch is run.
struct Pass {
  const Batch* batch = nullptr;
  std::int64_t step = 1;          ///< update this pass belongs to, from 1 (branch warm-up, dropout masks)
  std::int64_t micro = 0;         ///< micro-batch within the step, from 0 (dropout masks)
  bool training = true;           ///< dropout on, BatchNorm over the batch; else running statistics
  bool keep = true;               ///< a backward will follow
  bool recompute = false;         ///< the stack keeps the inputs of groups of layers and runs them again in backward
  bool update_statistics = true;  ///< BatchNorm's running statistics; never twice for one micro-batch
  Taps taps;                      ///< what the watchers ask for; the stack fills it in
};

/// What a sub-layer holds between its two ends, shown to a watcher after its forward. Undefined: it has no such thing.
struct Inside {
  at::Tensor norm_input;  ///< what enters norm_out, else norm_in
  at::Tensor skip;        ///< the skip term of the sum (α·x, z, …)
  at::Tensor branch;      ///< the term that the branch adds to the skip (f, a·f, λ⊙f, f/√2, t⊙f, …)
  /// Σ of the branch's squares, in double, from a backend that adds them up in passing; it then shows no `branch`, nor
  /// a `skip`, but to who asks for residual_terms, and where rows are padding.
  std::optional<double> branch_squares;
  at::Tensor logits;  ///< head only

  // Where the pass asks for them (Taps).
  at::Tensor branch_input, branch_output;  ///< of F, without the norms before and behind it, its factors and dropout
  at::Tensor query, key;                   ///< [B, heads, T, d_h], as the scores are made of them
  at::Tensor activation;                   ///< between the two weight layers of the branch; with one, before it
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
  /// Tells the next backward to set the gradients of the segment's own parameters, whatever they hold, instead of
  /// adding to them. False where a backend cannot: then they must be zero before it.
  virtual bool set_gradients_next() { return false; }
  /// The part of the latest backward's dL/d(input) that passed through the skip alone, where that pass asked for it and
  /// there is a skip; else undefined.
  virtual at::Tensor skip_gradient() { return {}; }
  /// The forward as a part of the caller's own graph (grad mode as it stands, nothing kept): for passes that
  /// differentiate through several segments, or twice. Throws std::logic_error where a backend has no such graph.
  virtual Stream forward_in_graph(const Stream& input, const Pass& pass);
};

/// The reference backend: `compute` is written with LibTorch operators, and autograd runs over this one segment, from a
/// leaf at its input to its output. Any device, any dtype, every model.
class AtenSegment : public Segment {
 public:
  Stream forward(const Stream& input, const Pass& pass, Inside* inside) final;
  Stream backward(const Stream& output_gradient) final;
  at::Tensor skip_gradient() final { return skip_gradient_; }
  Stream forward_in_graph(const Stream& input, const Pass& pass) final;

 protected:
  virtual Stream compute(const Stream& input, const Pass& pass, Inside* inside) = 0;

  /// Where the pass asks for the skip's gradient, `compute` puts the skip through here: it gets a place of its own in
  /// the graph. To be called after the branch was computed, so that backward adds up in the same order either way.
  at::Tensor noted_skip(const at::Tensor& skip, const Pass& pass);
  /// There was no skip after all.
  void forget_skip() { skip_start_ = skip_place_ = at::Tensor(); }

 private:
  at::Tensor gradient_through_skip(const Stream& input, const std::vector<at::Tensor>& roots,
                                   const std::vector<at::Tensor>& gradients) const;

  Stream input_;   // leaves
  Stream output_;  // with graph
  at::Tensor skip_start_, skip_place_, skip_gradient_;
};

}  // namespace gradflow
