#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "config/config.h"
#include "output/log.h"

namespace gradflow {

/// What became of one configuration of a pool.
struct PooledRun {
  std::string folder;   ///< POOL/ID
  std::string failure;  ///< why there is no finished run; empty otherwise
};

/// Makes the runs of these configurations in a pool of run folders, POOL/ID: equal configurations once, finished runs
/// not again, unfinished ones resumed, `jobs` at a time (0: as many as go), with `force` whatever memory they need. A
/// run that fails does not stop the others. The results stand in the order of the configurations. Throws Error with
/// Exit::interrupted after a signal. Call while this process has a single thread.
std::vector<PooledRun> run_pool(std::span<const Config> configs, const std::string& pool, std::int64_t jobs, bool force,
                                Log& log);

}  // namespace gradflow
