#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "config/config.h"
#include "config/json_reader.h"
#include "config/rules.h"

namespace gradflow {

/// Looks at what the file alone cannot tell (the machine, the data); what it refuses joins the one report.
using FurtherCheck = std::function<void(Examination&)>;

/// A value for one key, written elsewhere than in the configuration: in the axis of a grid.
struct Setting {
  std::string key;  ///< full path
  JsonValue value;
  Origin origin;
};

/// What a configuration is made of; of several values for a key the later wins.
struct ConfigSources {
  const JsonValue& root;    ///< of the configuration
  const std::string& file;  ///< where it was written: for messages, and for relative data.files
  std::span<const Setting> settings = {};
  std::string settings_file = {};  ///< where those were written, likewise; also names the study unless `name` does
  std::span<const std::string> overrides = {};
};

/// Puts the values together, makes data.files absolute and fills in what follows (`resolved`). Adds what is wrong with
/// single values to `faults` and notes where each key was written; does not look at combinations.
Config assembled(const ConfigSources& sources, Origins& origins, Faults& faults);

/// The same, and checks everything. Throws Error like load_config.
Config load_sources(const ConfigSources& sources, const FurtherCheck& further = {});

/// Reads a configuration file, or a text that is the configuration itself (it begins with "{"), applies KEY=VALUE
/// overrides, fills in what follows (`resolved`), makes data.files absolute and checks everything. Throws one Error
/// with a line for each fault, "FILE:LINE: KEY: fault; remedy", with "--set KEY" in the place of FILE:LINE for
/// overrides.
Config load_config(const std::string& path, std::span<const std::string> overrides = {},
                   const FurtherCheck& further = {});

/// The same from text; `file` is the name for messages, and its folder is where relative data.files are looked for. An
/// empty name leaves FILE:LINE out.
Config parse_config(std::string_view text, const std::string& file, std::span<const std::string> overrides = {},
                    const FurtherCheck& further = {});

/// The configuration that a finished or broken run has written to its config.json: every key must be there, known and
/// in its range. Nothing is filled in, nothing is looked for: the data may have moved, the device may be another
/// machine's. Throws Error like load_config.
Config parse_recorded_config(std::string_view text, const std::string& file);

/// Checks a configuration that a program made, as if it had been read. Throws Error like load_config.
void validate(const Config& config);

}  // namespace gradflow
