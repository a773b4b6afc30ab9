#pragma once

#include <string_view>

namespace gradflow {

/// What this program was built from and with, for --version, `info` and the manifest.
struct BuildInfo {
  std::string_view version;       ///< of the program, "0.1.0"
  std::string_view git_revision;  ///< 12 hex digits, "-dirty" behind them if files were changed; "unknown" outside git
  std::string_view compiler;      ///< "g++ 12.2.0"
  std::string_view build_type;    ///< "Release"
};

const BuildInfo& build_info();

}  // namespace gradflow
