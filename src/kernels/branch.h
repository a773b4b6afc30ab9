#pragma once

#include <memory>
#include <string>

#include "config/config.h"
#include "config/placements.h"
#include "kernels/workspace.h"

namespace gradflow {

/// F of a sub-layer without the bias of its last matrix, which the residual sum adds: attention or feed-forward.
class Branch {
 public:
  virtual ~Branch() = default;
  /// A pass over `batch` begins.
  virtual void begin(const Batch& batch) = 0;
  /// f [chunk.rows, width] = F(z) for the rows of `chunk`; keeps what backward needs.
  virtual void forward(const Chunk& chunk, const float* z, float* f) = 0;
  /// dz from df = dL/df; z is what forward was given. Adds the gradients of the parameters.
  virtual void backward(const Chunk& chunk, const float* z, const float* df, float* dz) = 0;

  const Parameter& out_bias() const { return out_bias_; }

 protected:
  Parameter out_bias_;
};

/// `prefix`: of the parameters' names, block.{l}.attention or block.{l}.ffn.
std::unique_ptr<Branch> make_branch(const Config& config, const ParameterStore& store, Workspace& workspace,
                                    KeptBuffers& kept, SubLayerKind kind, const std::string& prefix);

}  // namespace gradflow
