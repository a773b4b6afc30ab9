#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gradflow {

/// How a run stands. The words stand in manifest.json, but for `killed`: that the process is gone which left `running`
/// there shows from outside alone (`status_of_folder`).
enum class RunStatus { running, finished, diverged, interrupted, failed, killed };
std::string_view name_of(RunStatus status);
/// Absent for any other word.
std::optional<RunStatus> status_named(std::string_view word);

/// A time at which a run was taken up again.
struct Resumption {
  std::int64_t step = 0;             ///< the last step that was kept
  std::string at;                    ///< utc_text
  std::vector<std::string> changed;  ///< changes_of_surroundings
};

/// Where and with what a run was made, and how it ended: the content of manifest.json. The caller fills it in; this
/// folder knows neither LibTorch nor the devices.
struct Manifest {
  std::string version;
  std::string git_revision;
  std::string compiler;
  std::string libtorch;
  std::string blas;  ///< library and kernel
  std::string cpu;
  std::string host;
  std::string device;   ///< what the run took, not what was asked for: never "auto"
  std::string backend;  ///< that computed the segments: aten or fused, never "auto"
  std::int64_t threads = 1;
  bool flush_denormals = false;
  std::vector<std::string> command_line;
  std::string started;                                         ///< utc_text of the first start
  std::vector<Resumption> resumed;                             ///< oldest first
  std::optional<std::chrono::system_clock::time_point> ended;  ///< absent while running
  RunStatus status = RunStatus::running;
  std::string reason;  ///< why it stands so, for people; empty when there is nothing to say
};

/// ISO 8601 in UTC, whole seconds: 2024-01-31T13:05:09Z.
std::string utc_text(std::chrono::system_clock::time_point time);

/// Writes it in one step; where the disk has no room for that, over the old one. Throws Error naming the file.
void write_manifest(const std::string& path, const Manifest& manifest);

/// Takes over from the manifest that is there when a run began and was resumed. Nothing without a readable one.
void continue_history(const std::string& path, Manifest& manifest);

/// What differs between the manifest that is there and this one of all that bits depend on: program, libraries,
/// processor, device and backend, as "cpu A → B". Nothing without a readable one.
std::vector<std::string> changes_of_surroundings(const std::string& path, const Manifest& manifest);

/// Writes into a manifest, whose process has ended without doing so, that its run failed and why. Does nothing where
/// there is no manifest or it cannot be read. Throws Error naming the file when it cannot be written.
void write_failure(const std::string& path, const std::string& reason);

/// The status that a manifest holds. Absent when there is no file or it is not a manifest.
std::optional<RunStatus> status_in_manifest(const std::string& path);

}  // namespace gradflow
