#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "config/config.h"

namespace gradflow::testing {

/// A golden case by name, made by src/testing/golden/oracle.py.
nlohmann::json golden_case(const std::string& name);

/// Names of all golden cases whose file name begins (or does not begin) with one of `prefixes`, sorted.
std::vector<std::string> golden_names(const std::vector<std::string>& prefixes, bool begins = true);

/// The resolved configuration that a case's `config` describes, with `sinusoid` weights: the `quadratic` task for a
/// Transformer, classes for an mlp, images of 8 × 8 in as many classes for a resnet.
Config golden_config(const nlohmann::json& config, Dtype dtype);

}  // namespace gradflow::testing
