#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"

namespace gradflow {

// Names of the report: short words for groups, axes and units.

/// The names of models by what colour means: the placement; the residual form where the placement is `none`; "no norm"
/// where both are plain. Norms and other residual forms stand behind it only where they tell models apart. Equal
/// placement, residual form and norm give equal names, different ones different names.
std::vector<std::string> group_labels(std::span<const ModelConfig> models);

/// "learning rate" of "learning_rate", "warm-up" of "warmup", "batch size" of "batch".
std::string axis_name(std::string_view key_label);

/// Whether symbols follow one another, so that a token has a loss.
bool is_sequence_task(Task task);
/// "nats a token", "nats a sample", "squared error"; "unit by task" where tasks of several kinds are compared.
std::string loss_unit(const std::set<Task>& tasks);

}  // namespace gradflow
