#pragma once

#include <string>

#include "config/config.h"
#include "model/stack.h"
#include "model/tensor.h"

namespace gradflow {

class Workspace;

/// Which backend runs `config` (resolved) on `device`: the one that compute.backend names; `auto` takes fused wherever
/// it can serve, since it was nowhere slower (src/kernels/README.md). Throws Error where fused is asked for and cannot.
Backend chosen_backend(const Config& config, at::Device device);
/// The same in words for people, "aten (fused cannot: model.dropout is 0.1)".
std::string backend_in_words(const Config& config, at::Device device);

/// What makes the segments of that backend.
SegmentFactory segment_factory(const Config& config, at::Device device);

/// The segments of a Transformer on the fused backend, for a configuration without fused_obstacles on the CPU.
std::vector<std::unique_ptr<Segment>> make_fused_segments(const Config& config, const ParameterStore& store);
/// The same in that workspace, made for the same configuration.
std::vector<std::unique_ptr<Segment>> make_fused_segments_in(const std::shared_ptr<Workspace>& workspace,
                                                             const Config& config, const ParameterStore& store);

}  // namespace gradflow
