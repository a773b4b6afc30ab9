#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "config/config.h"
#include "model/parameter_store.h"
#include "model/segment.h"
#include "model/tensor.h"

namespace gradflow {

/// The segments of a Transformer on the reference backend, in the order of `make_layout(config).segments`: embedding,
/// attention and feed-forward of each block, final norm where there is one, head with the loss. They use the parameters
/// of `store`, which must outlive them.
std::vector<std::unique_ptr<Segment>> make_transformer(const Config& config, const ParameterStore& store);

/// The fixed position table of Vaswani et al. 2017, [T, d]: sin and cos of t/10000^(2i/d), in even and odd columns.
at::Tensor sinusoidal_positions(std::int64_t tokens, std::int64_t width, const at::TensorOptions& options);

}  // namespace gradflow
