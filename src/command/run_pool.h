#pragma once

#include <cstdint>
#include <iosfwd>
#include <span>
#include <string>
#include <vector>

#include "config/config.h"

namespace gradflow {

/// What became of one configuration of a pool.
struct PooledRun {
  std::string folder;   ///< POOL/ID
  std::string failure;  ///< why there is no finished run; empty otherwise
};

/// Makes the runs of these configurations in a pool of run folders, POOL/ID: equal configurations once, finished runs
/// not again, unfinished ones resumed. A run that fails does not stop the others. The results stand in the order of the
/// configurations. Progress goes to `terminal`.
std::vector<PooledRun> run_pool(std::span<const Config> configs, const std::string& pool, std::int64_t jobs,
                                std::ostream& terminal);

}  // namespace gradflow
