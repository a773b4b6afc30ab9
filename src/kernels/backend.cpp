#include "kernels/backend.h"

#include <fmt/format.h>

#include <vector>

#include "config/backend.h"
#include "config/derived.h"
#include "core/error.h"
#include "kernels/ends.h"
#include "kernels/sub_layer.h"

namespace gradflow {
namespace {

/// What stands against the fused backend, with the device that `auto` found.
std::vector<FusedObstacle> obstacles_on(const Config& config, at::Device device) {
  std::vector<FusedObstacle> obstacles = fused_obstacles(config);
  std::erase_if(obstacles, [](const FusedObstacle& obstacle) { return obstacle.key == "compute.device"; });
  if (!device.is_cpu())
    obstacles.insert(obstacles.begin(), {"compute.device", "the device is " + device.str(), "write cpu"});
  return obstacles;
}

}  // namespace

Backend chosen_backend(const Config& config, at::Device device) {
  if (config.compute.backend == Backend::aten) return Backend::aten;
  const auto against = obstacles_on(config, device);
  if (against.empty()) return Backend::fused;
  if (config.compute.backend == Backend::automatic) return Backend::aten;
  throw Error(fmt::format("compute.backend: fused cannot run this: {}; or write auto or aten here",
                          remedies_in_words(against)));
}

std::string backend_in_words(const Config& config, at::Device device) {
  const Backend chosen = chosen_backend(config, device);
  if (chosen == Backend::fused || config.compute.backend == Backend::aten) return std::string(name_of(chosen));
  return fmt::format("{} (fused cannot: {})", name_of(chosen), faults_in_words(obstacles_on(config, device)));
}

SegmentFactory segment_factory(const Config& config, at::Device device) {
  return chosen_backend(config, device) == Backend::fused ? make_fused_segments : make_reference_segments;
}

std::vector<std::unique_ptr<Segment>> make_fused_segments(const Config& config, const ParameterStore& store) {
  return make_fused_segments_in(std::make_shared<Workspace>(config), config, store);
}

std::vector<std::unique_ptr<Segment>> make_fused_segments_in(const std::shared_ptr<Workspace>& workspace,
                                                             const Config& config, const ParameterStore& store) {
  std::vector<std::unique_ptr<Segment>> segments;
  segments.push_back(make_fused_embedding(config, store, workspace));
  FusedSubLayer* last = nullptr;
  for (std::int64_t block = 1; block <= config.model.depth; ++block) {
    for (const SubLayerKind kind : {SubLayerKind::attention, SubLayerKind::ffn}) {
      auto made = std::make_unique<FusedSubLayer>(config, store, workspace, block, kind, segments.size());
      if (last != nullptr) last->set_next(*made);
      last = made.get();
      segments.push_back(std::move(made));
    }
  }
  if (has_final_norm(config.model)) segments.push_back(make_fused_final_norm(config, store, workspace));
  segments.push_back(make_fused_head(config, store, workspace));
  return segments;
}

}  // namespace gradflow
