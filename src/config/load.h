#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "config/config.h"
#include "config/rules.h"

namespace gradflow {

/// Looks at what the file alone cannot tell (the machine, the data); what it refuses joins the one report.
using FurtherCheck = std::function<void(Examination&)>;

/// Reads a configuration file, applies KEY=VALUE overrides, fills in what follows (`resolved`), makes data.files
/// absolute and checks everything. Throws one Error with a line for each fault, "FILE:LINE: KEY: fault; remedy", with
/// "--set KEY" in the place of FILE:LINE for overrides.
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
