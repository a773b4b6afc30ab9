#pragma once

#include <memory>
#include <string>
#include <vector>

#include "config/config.h"
#include "config/placements.h"
#include "kernels/linear_map.h"
#include "kernels/workspace.h"

namespace gradflow {

/// F of a sub-layer without the bias of its last matrix, which the residual sum adds: attention or feed-forward.
/// F = out ∘ inner, where `out` is a linear map; forward and backward come in these two parts, so that the sub-layer
/// can say in between what to fetch during the products that follow.
class Branch {
 public:
  virtual ~Branch() = default;
  /// A pass over `batch` begins; or its way back.
  virtual void begin_forward(const Batch& batch) = 0;
  virtual void begin_backward() = 0;
  /// inner(z) for the rows of `chunk`; keeps what backward needs.
  virtual void inner(const Chunk& chunk, const float* z) = 0;
  /// f [chunk.rows, width] = out(inner(z)).
  virtual void out(const Chunk& chunk, float* f) = 0;
  /// From df = dL/df to the gradient of what the maps of `inner` gave. Adds the gradients of `out` and of the biases.
  virtual void out_backward(const Chunk& chunk, const float* df) = 0;
  /// From there to dz; z is what `inner` was given. Adds the gradients of its maps.
  virtual void inner_backward(const Chunk& chunk, const float* z, float* dz) = 0;

  /// All maps, whose weights are all parameters of the branch but its biases.
  virtual std::vector<LinearMap*> maps() = 0;

  // Fetched ahead, in the order of need: what a pass forward reads; what it writes for a chunk; what the way back
  // through a chunk reads.
  virtual void fetch_weights() const = 0;
  virtual void fetch_written(const Chunk& chunk) const = 0;
  virtual void fetch_kept(const Chunk& chunk) const = 0;

  const Parameter& out_bias() const { return out_bias_; }

 protected:
  Parameter out_bias_;
};

/// `prefix`: of the parameters' names, block.{l}.attention or block.{l}.ffn.
std::unique_ptr<Branch> make_branch(const Config& config, const ParameterStore& store, Workspace& workspace,
                                    KeptBuffers& kept, SubLayerKind kind, const std::string& prefix);

}  // namespace gradflow
