#pragma once

#include <string>
#include <vector>

#include "analysis/find_runs.h"
#include "report/report.h"
#include "testing/made_run.h"
#include "testing/temporary_folder.h"

namespace gradflow::testing {

/// Writes these runs into a folder and arranges what is found there.
inline Report made_report(const std::vector<MadeRun>& runs, const std::string& name = "study") {
  TemporaryFolder folder;
  for (std::size_t i = 0; i < runs.size(); ++i) make_run(folder / ("run" + std::to_string(1000 + i)), runs[i]);
  FoundRuns found = find_runs(std::vector<std::string>{folder.path()});
  Report report = make_report(make_study(std::move(found.runs)), name);
  report.left_out = std::move(found.left_out);
  return report;
}

/// Pre learns, post is stuck and its gradient vanishes: two depths, so many seeds.
inline std::vector<MadeRun> two_placements(std::int64_t seeds) {
  std::vector<MadeRun> runs;
  for (const Placement placement : {Placement::pre, Placement::post})
    for (const std::int64_t depth : {4, 8})
      for (std::int64_t seed = 1; seed <= seeds; ++seed) {
        const double by_seed = 0.01 * static_cast<double>(seed);
        MadeRun run{.config = transformer_config(depth, placement, seed), .loss = 1.7 + by_seed};
        if (placement == Placement::post) {
          run.loss = 3.9 + by_seed / 2;
          run.gradient_rate = -1.5 - by_seed;
        }
        runs.push_back(std::move(run));
      }
  return runs;
}

}  // namespace gradflow::testing
