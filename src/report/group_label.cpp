#include "report/group_label.h"

#include <algorithm>
#include <map>

namespace gradflow {
namespace {

/// Without the norm.
std::string base_label(const ModelConfig& model) {
  const std::string placement(name_of(model.placement)), residual(name_of(model.residual));
  if (model.placement == Placement::none) {
    if (model.residual == Residual::add) return "no norm";
    return model.residual == Residual::none ? "plain" : residual;
  }
  if (model.residual == Residual::add) return placement;
  return placement + (model.residual == Residual::none ? ", no skip" : ", " + residual);
}

/// The norm that has an effect: a placement without a site for it has none.
Norm effective_norm(const ModelConfig& model) { return model.placement == Placement::none ? Norm::none : model.norm; }

enum class LossKind { token, sample, squared };

LossKind loss_kind(Task task) {
  if (is_sequence_task(task)) return LossKind::token;
  return task == Task::identity ? LossKind::squared : LossKind::sample;
}

}  // namespace

std::vector<std::string> group_labels(std::span<const ModelConfig> models) {
  std::map<std::string, std::set<Norm>> all_norms;  // of each base label
  std::set<Norm> norms;
  for (const ModelConfig& model : models) {
    all_norms[base_label(model)].insert(model.norm);
    if (model.placement != Placement::none) norms.insert(effective_norm(model));
  }
  std::vector<std::string> labels;
  for (const ModelConfig& model : models) {
    std::string label = base_label(model);
    const bool tells_apart = all_norms[label].size() > 1 || (model.placement != Placement::none && norms.size() > 1);
    if (tells_apart) label += model.norm == Norm::none ? ", no norm" : ", " + std::string(name_of(model.norm));
    labels.push_back(label);
  }
  return labels;
}

std::string axis_name(std::string_view key_label) {
  if (key_label == "warmup") return "warm-up";
  if (key_label == "batch") return "batch size";
  std::string name(key_label);
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

bool is_sequence_task(Task task) {
  return task != Task::teacher && task != Task::clusters && task != Task::identity && task != Task::cifar10;
}

std::string loss_unit(const std::set<Task>& tasks) {
  std::set<LossKind> kinds;
  for (const Task task : tasks) kinds.insert(loss_kind(task));
  if (kinds.size() != 1) return "unit by task";
  switch (*kinds.begin()) {
    case LossKind::token: return "nats a token";
    case LossKind::sample: return "nats a sample";
    case LossKind::squared: return "squared error";
  }
  return "";
}

}  // namespace gradflow
