#pragma once

#include <memory>
#include <span>
#include <string>

#include "config/config.h"
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

/// Reads the configuration file, applies KEY=VALUE overrides, looks for the device and reads the data. Throws one Error
/// with a line for everything that is wrong with them, "FILE:LINE: KEY: fault; remedy".
Prepared prepare(const std::string& path, std::span<const std::string> overrides = {});

}  // namespace gradflow
