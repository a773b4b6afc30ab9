#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "analysis/verdict.h"
#include "config/config.h"
#include "output/manifest.h"

namespace gradflow {

/// A run folder, read back: what its three JSON files say. Its tables are read by run_series.h, when somebody asks.
struct RecordedRun {
  std::string path;                       ///< of the folder, as it was found
  Config config;                          ///< as the run resolved it: every number written
  nlohmann::json derived;                 ///< of config.json: parameters, formulas, initial std, hash of the data files
  nlohmann::json manifest;                ///< of manifest.json
  nlohmann::json summary;                 ///< of summary.json; null while there is none
  RunStatus status = RunStatus::running;  ///< status_of_folder
  std::string reason;                     ///< why it stands so; may be empty

  /// Whether the run came to its end, be it at a non-finite value: its results count.
  bool finished() const { return status == RunStatus::finished || status == RunStatus::diverged; }
  /// Absent while the run is not finished, and for tasks without a unigram entropy.
  std::optional<Verdict> verdict() const;
  /// A number of summary.json by its JSON pointer ("/final_loss", "/profiles/last_step/stream_grad_norm/ratio");
  /// absent when it is not there or null, as numbers are that were not finite.
  std::optional<double> number(std::string_view pointer) const;
  std::optional<double> final_loss() const { return number("/final_loss"); }
  /// H₁ in nats, or the loss of the best constant answer.
  std::optional<double> unigram_entropy() const { return number("/unigram_entropy"); }
  std::optional<double> entropy_rate() const { return number("/entropy_rate"); }

  /// Hash of the content of data.files; empty without files.
  std::string files_hash() const;
  /// The name of the run's folder if it stood in its place: run_id(config).
  std::string id() const;
  /// The path of a file in the folder.
  std::string file(std::string_view name) const { return path + '/' + std::string(name); }
};

/// A folder or file that was looked at and is not used.
struct LeftOut {
  std::string path;
  std::string reason;  ///< what is wrong; what to do about it
};

/// Reads one run folder. What cannot be used is left out with the reason, whatever is in it: half-written, damaged,
/// written by a version with other files. Versions that differ in their last number only have the same files. The
/// tables must be there, with the columns of this version; their rows are not looked at.
std::variant<RecordedRun, LeftOut> read_run(const std::string& path);

}  // namespace gradflow
