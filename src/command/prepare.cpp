#include "command/prepare.h"

#include <map>
#include <string_view>
#include <vector>

#include "command/device.h"
#include "config/fields.h"
#include "config/load.h"
#include "core/error.h"
#include "kernels/backend.h"

namespace gradflow {
namespace {

/// The key that "KEY: fault" begins with, or empty.
std::string_view key_of(std::string_view line) {
  const std::string_view key = line.substr(0, line.find(": "));
  return find_field(key) != nullptr ? key : std::string_view();
}

/// Does one thing that may throw; its faults join the report of the configuration, under their own key or `key`.
template <class Step>
void attempt(Examination& examination, std::string_view key, Step step) {
  try {
    step(examination.config);
  } catch (const Error& error) {
    std::map<std::string_view, std::vector<std::string>> faults;
    for (const std::string& line : error.lines()) {
      const std::string_view own = key_of(line);
      if (own.empty())
        faults[key].push_back(line);
      else
        faults[own].push_back(line.substr(own.size() + 2));
    }
    for (const auto& [at_fault, lines] : faults) examination.refuse(at_fault, lines);
  }
}

}  // namespace

Prepared prepare(const LoadConfig& load) {
  Prepared result;
  result.config = load([&](Examination& examination) {
    attempt(examination, "compute.device",
            [&](const Config& config) { result.device = device_named(config.compute.device); });
    // The device that `auto` found may not be one for compute.backend fused.
    if (examination.in_order("compute."))
      attempt(examination, "compute.backend", [&](const Config& config) { chosen_backend(config, result.device); });
    // With a key of the data at fault its default stands in the configuration, and would be blamed here.
    if (examination.in_order("data.") && examination.in_order("train."))
      attempt(examination, "data.task", [&](const Config& config) { result.source = make_source(config); });
  });
  if (result.config.model.stack == StackKind::transformer)
    result.config.data.vocabulary = result.source->facts().vocabulary;
  return result;
}

Prepared prepare(const std::string& path, std::span<const std::string> overrides) {
  return prepare([&](const FurtherCheck& further) { return load_config(path, overrides, further); });
}

}  // namespace gradflow
