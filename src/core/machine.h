#pragma once

#include <cstdint>
#include <string>

namespace gradflow {

/// Cores that this process may use (its affinity mask, which batch systems set).
std::int64_t usable_cores();

/// The name of this machine, "unknown" where it has none.
std::string host_name();

/// The processor as the system names it, "unknown" where it does not.
std::string cpu_model();
/// The same from the text of /proc/cpuinfo.
std::string cpu_model_in(const std::string& cpuinfo);

}  // namespace gradflow
