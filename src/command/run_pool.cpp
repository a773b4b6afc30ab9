#include "command/run_pool.h"

#include <fmt/format.h>

#include <map>
#include <ostream>

#include "analysis/recorded_run.h"
#include "command/device.h"
#include "command/experiment.h"
#include "config/identity.h"
#include "data/source.h"

namespace gradflow {
namespace {

Prepared prepared(const Config& config) {
  Prepared result;
  result.config = config;
  result.device = device_named(config.compute.device);
  result.source = make_source(config);
  if (config.model.stack == StackKind::transformer) result.config.data.vocabulary = result.source->facts().vocabulary;
  return result;
}

bool is_finished(const std::string& folder) {
  const auto found = read_run(folder);
  const RecordedRun* run = std::get_if<RecordedRun>(&found);
  return run != nullptr && run->finished();
}

PooledRun run_one(const Config& config, const std::string& folder, std::ostream& terminal) {
  PooledRun result{.folder = folder};
  try {
    const ExperimentResult experiment =
        run_experiment(prepared(config), {.out = folder, .resume = true, .quiet = true}, terminal);
    if (experiment.exit == Exit::interrupted) throw Error("interrupted; run again to go on", Exit::interrupted);
  } catch (const Error& error) {
    if (error.exit() == Exit::interrupted) throw;
    result.failure = error.lines().front();
  } catch (const std::bad_alloc&) {
    result.failure = "not enough memory";
  } catch (const std::exception& error) {
    const std::string_view what = error.what();
    result.failure = what.substr(0, what.find('\n'));
  }
  return result;
}

}  // namespace

std::vector<PooledRun> run_pool(std::span<const Config> configs, const std::string& pool, std::int64_t jobs,
                                std::ostream& terminal) {
  (void)jobs;
  std::map<std::string, PooledRun> done;
  std::vector<PooledRun> results;
  for (const Config& config : configs) {
    const std::string id = run_id(config);
    auto found = done.find(id);
    if (found == done.end()) {
      const std::string folder = pool + '/' + id;
      found = done.emplace(id, is_finished(folder) ? PooledRun{folder, ""} : run_one(config, folder, terminal)).first;
      terminal << fmt::format("{} runs done; {}\n", done.size(), id) << std::flush;
    }
    results.push_back(found->second);
  }
  return results;
}

}  // namespace gradflow
