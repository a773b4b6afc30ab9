#include "kernels/norm_slot.h"

namespace gradflow {

NormSlot::NormSlot(const ParameterStore& store, const std::string& prefix, const ModelConfig& model, float scale,
                   float* statistics)
    : shape_{.width = static_cast<std::size_t>(model.width),
             .centred = model.norm == Norm::layernorm,
             .epsilon = static_cast<float>(model.norm_epsilon),
             .scale = scale},
      gain_(store, prefix + ".weight"),
      bias_(store, prefix + ".bias"),
      statistics_(statistics) {}

NormShape NormSlot::shape_of(const Chunk& chunk) const {
  NormShape shape = shape_;
  shape.rows = chunk.rows;
  return shape;
}

void NormSlot::forward(const Chunk& chunk, const float* x, float* y) const {
  norm_forward(shape_of(chunk), x, gain_.value, bias_.value, y, statistics_ + 2 * chunk.first_row);
}

void NormSlot::again(const Chunk& chunk, const float* x, float* y) const {
  norm_again(shape_of(chunk), x, statistics_ + 2 * chunk.first_row, gain_.value, bias_.value, y);
}

void NormSlot::backward(const Chunk& chunk, const float* dy, const float* x, float keep, float* dx) const {
  norm_backward(shape_of(chunk), dy, x, statistics_ + 2 * chunk.first_row, gain_.value, keep, dx, gain_.gradient,
                bias_.gradient);
}

}  // namespace gradflow
