#include "config/backend.h"

#include <fmt/format.h>

#include "config/fields.h"
#include "config/placements.h"
#include "config/quantities.h"
#include "config/rules.h"

namespace gradflow {
namespace {

/// The sub-layers that the fused driver knows: norms at its three sites, constants, no part of their own.
bool is_covered(const SubLayerPlan& plan) {
  return !plan.inner_norm && !plan.norm_query_key_value && !plan.head_scale && !plan.skip_is_normed &&
         !plan.adds_block_input && plan.skip_scale != SkipScale::learned_admin;
}

bool is_covered(Placement placement) {
  const PlacementRow& row = placement_row(placement);
  return is_covered(row.attention) && is_covered(row.ffn) && !row.second_stream;
}

bool is_covered(Norm norm) { return norm == Norm::none || norm == Norm::layernorm || norm == Norm::rmsnorm; }

bool is_covered(Activation activation) { return activation == Activation::gelu || activation == Activation::relu; }

bool is_covered(Residual residual) {
  switch (residual) {
    case Residual::add:
    case Residual::none:
    case Residual::scaled:
    case Residual::rezero:
    case Residual::sqrt2: return true;
    case Residual::layerscale:
    case Residual::highway:
    case Residual::concat:
    case Residual::gate_literal: return false;
  }
  return false;
}

/// The names that are covered, for a remedy.
template <class Choice>
std::string write_covered() {
  std::string words;
  for (std::size_t i = 0; i < names_of(Choice{}).size(); ++i)
    if (is_covered(static_cast<Choice>(i)))
      words += (words.empty() ? "write one of " : ", ") + std::string(names_of(Choice{})[i]);
  return words;
}

/// One thing that the fused backend cannot do.
struct Limit {
  std::string_view key;
  bool (*in_the_way)(const Config&);
  std::string remedy;
};

const std::vector<Limit>& limits() {
  static const std::vector<Limit> all{
      {"compute.dtype", [](const Config& c) { return c.compute.dtype != Dtype::float32; }, "write float32"},
      {"compute.device", [](const Config& c) { return c.compute.device.starts_with("cuda"); }, "write cpu"},
      {"compute.threads", [](const Config& c) { return c.compute.threads != 1; }, "write 1"},
      {"model.stack", [](const Config& c) { return c.model.stack != StackKind::transformer; }, "write transformer"},
      {"model.placement", [](const Config& c) { return !is_covered(c.model.placement); }, write_covered<Placement>()},
      {"model.residual", [](const Config& c) { return !is_covered(c.model.residual); }, write_covered<Residual>()},
      {"model.norm", [](const Config& c) { return !is_covered(c.model.norm); }, write_covered<Norm>()},
      {"model.activation", [](const Config& c) { return !is_covered(c.model.activation); },
       write_covered<Activation>()},
      {"model.qk_norm", [](const Config& c) { return c.model.qk_norm; }, "write false"},
      {"model.dropout", [](const Config& c) { return c.model.dropout != 0; }, "write 0"},
      {"record.quantities", [](const Config& c) { return look_inside(c.record.quantities); },
       "leave out what is measured inside sub-layers"},
  };
  return all;
}

}  // namespace

std::vector<FusedObstacle> fused_obstacles(const Config& config) {
  std::vector<FusedObstacle> obstacles;
  for (const Limit& limit : limits()) {
    if (!limit.in_the_way(config)) continue;
    const Json value = find_field(limit.key)->value(config);
    obstacles.push_back(
        {limit.key, fmt::format("{} is {}", limit.key, value.is_string() ? value.get<std::string>() : value.dump()),
         limit.remedy});
  }
  return obstacles;
}

std::string faults_in_words(const std::vector<FusedObstacle>& obstacles) {
  std::string words;
  for (const FusedObstacle& obstacle : obstacles) words += (words.empty() ? "" : ", ") + obstacle.fault;
  return words;
}

std::string remedies_in_words(const std::vector<FusedObstacle>& obstacles) {
  std::string words;
  for (const FusedObstacle& obstacle : obstacles)
    words += fmt::format("{}{} ({})", words.empty() ? "" : ", ", obstacle.fault, obstacle.remedy);
  return words;
}

void check_backend(Examination& examination) {
  if (examination.config.compute.backend != Backend::fused) return;
  std::vector<FusedObstacle> obstacles = fused_obstacles(examination.config);
  std::erase_if(obstacles, [&](const FusedObstacle& obstacle) { return !examination.in_order(obstacle.key); });
  if (!obstacles.empty())
    examination.refuse({"compute.backend"}, fmt::format("fused cannot run this: {}; or write auto or aten here",
                                                        remedies_in_words(obstacles)));
}

}  // namespace gradflow
