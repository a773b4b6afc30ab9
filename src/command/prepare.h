#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "config/config.h"
#include "config/load.h"
#include "data/source.h"
#include "model/tensor.h"

namespace gradflow {

/// All that stands before a model is built: `run` goes on from here, `validate` stops here, so that their verdicts
/// agree.
struct Prepared {
  Config config;                       ///< resolved, the vocabulary filled in
  std::unique_ptr<DataSource> source;  ///< the data, read
  at::Device device = at::kCPU;        ///< what compute.device names on this machine
};

/// Reads a configuration with the check it is given, as `load_config` does.
using LoadConfig = std::function<Config(const FurtherCheck&)>;

/// Prepares the configuration that `load` gives: looks for the device and reads the data. Throws one Error with a line
/// for everything that is wrong with them, "FILE:LINE: KEY: fault; remedy".
Prepared prepare(const LoadConfig& load);

/// Reads the configuration file, applies KEY=VALUE overrides, looks for the device and reads the data. Throws one Error
/// with a line for everything that is wrong with them, "FILE:LINE: KEY: fault; remedy".
Prepared prepare(const std::string& path, std::span<const std::string> overrides = {});

}  // namespace gradflow
