#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "config/config.h"
#include "data/task_facts.h"
#include "model/layout.h"

namespace gradflow {

/// What `describe` describes.
struct Subject {
  const Config& config;  ///< resolved, the vocabulary filled in
  Layout layout;
  TaskFacts facts;
  std::string files_hash;
  std::string folder;   ///< where `run` would write
  std::string backend;  ///< which one runs it, and why not the other
};

/// For people, at most 100 columns wide but for the values of keys.
std::string description_text(const Subject& subject);

/// The same content for scripts: `folder`, `derived` (as in config.json), `parameter_groups`, `decay_groups`,
/// `memory_bytes`, `task`, `changed`, `config`. Numbers in full precision.
nlohmann::ordered_json description_json(const Subject& subject);

}  // namespace gradflow
