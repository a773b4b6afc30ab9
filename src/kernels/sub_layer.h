#pragma once

#include <memory>
#include <span>
#include <vector>

#include "config/config.h"
#include "config/placements.h"
#include "kernels/branch.h"
#include "kernels/norm_slot.h"
#include "kernels/workspace.h"
#include "model/segment.h"

namespace gradflow {

/// One sub-layer of every placement that this backend covers:
///   z = norm_in(x)·input_scale,  f = norm_branch(F(z)),  y = skip·x + branch·f,  x' = norm_out(y)
/// with each norm present or not, and two factors that are constants or hold a learned scalar. Forward and backward go
/// through it in chunks of whole sequences.
class FusedSubLayer final : public Segment {
 public:
  /// `segment`: its place in the layout.
  FusedSubLayer(const Config& config, const ParameterStore& store, std::shared_ptr<Workspace> workspace,
                std::int64_t block, SubLayerKind kind, std::size_t segment);

  Stream forward(const Stream& input, const Pass& pass, Inside* inside) override;
  Stream backward(const Stream& output_gradient) override;
  bool set_gradients_next() override;

  /// `next` runs after this one, on the way back before it: each fetches ahead for the other.
  void set_next(FusedSubLayer& next) {
    next_ = &next;
    next.previous_ = this;
  }

 private:
  bool has_skip() const { return skip_factor_ != 0; }
  /// What F reads: x itself, or in `normed` of the workspace. `again`: the statistics are known.
  const float* entering(const Chunk& chunk, const float* x, bool again) const;
  /// norm_branch(F(z) + bias); with the bias left to the residual sum where nothing stands between, which is returned.
  const float* transform(const Chunk& chunk, const float* z, float*& f);
  void forward(const Chunk& chunk);
  void backward(const Chunk& chunk, float* gradient);
  void fill(Inside& inside);
  /// Says what to fetch while the last products of a chunk run: what comes behind it, in this sub-layer or the next.
  /// `raw`: where the last product of the branch goes.
  void fetch_after_forward(const Chunk& chunk, const float* raw) const;
  void fetch_after_backward(const Chunk& chunk) const;
  void fetch_kept(const Chunk& chunk) const;

  const ModelConfig model_;
  std::shared_ptr<Workspace> workspace_;
  std::int64_t block_;
  std::size_t width_;
  const FusedSubLayer *previous_ = nullptr, *next_ = nullptr;

  NormSlot norm_in_, norm_branch_, norm_out_;
  float input_scale_;
  float skip_factor_;          // 0: no skip path
  float constant_branch_ = 1;  // what multiplies f beside the learned scalar and the warm-up
  Parameter learned_;          // the learned scalar, if any
  std::unique_ptr<Branch> branch_;
  std::vector<LinearMap*> maps_;                   // of the branch
  std::vector<std::span<float>> other_gradients_;  // of biases, norms and scalars

  StreamBuffer output_;
  StreamBuffer sum_;  // y, where norm_out reads it
  float* before_norm_branch_ = nullptr;
  float* term_ = nullptr;  // f, kept for the gradient of a learned scalar

  at::Tensor input_;
  float fixed_factor_ = 1, branch_factor_ = 1;  // of the latest forward, without and with the learned scalar
  /// What the latest forward has to show of the terms of its sum.
  enum class Terms { nothing, squares, tensors } shown_ = Terms::nothing;
  double branch_squares_ = 0;
  double scalar_gradient_ = 0;
};

}  // namespace gradflow
