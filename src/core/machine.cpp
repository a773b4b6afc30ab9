#include "core/machine.h"

#include <sched.h>
#include <unistd.h>

#include <array>
#include <string_view>

#include "core/error.h"
#include "core/files.h"

namespace gradflow {

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "unknown";
  return name.data();
}

std::int64_t usable_cores() {
  cpu_set_t mask;
  return sched_getaffinity(0, sizeof mask, &mask) == 0 ? CPU_COUNT(&mask) : 1;
}

std::string cpu_model() {
  try {
    return cpu_model_in(read_file("/proc/cpuinfo"));
  } catch (const Error&) {
    return "unknown";
  }
}

std::string cpu_model_in(const std::string& cpuinfo) {
  // x86 has "model name"; POWER "cpu"; 64-bit ARM often only numbers, of which the implementer and part tell most.
  for (const std::string_view key : {"model name", "cpu model", "Model", "cpu", "CPU part"}) {
    std::size_t start = 0;
    while (start < cpuinfo.size()) {
      const std::size_t end = std::min(cpuinfo.find('\n', start), cpuinfo.size());
      const std::string_view line = std::string_view(cpuinfo).substr(start, end - start);
      const std::size_t colon = line.find(':');
      if (colon != std::string_view::npos) {
        const std::string_view name = line.substr(0, line.find_last_not_of(" \t", colon - 1) + 1);
        const std::size_t value = line.find_first_not_of(" \t", colon + 1);
        if (name == key && value != std::string_view::npos) return std::string(line.substr(value));
      }
      start = end + 1;
    }
  }
  return "unknown";
}

}  // namespace gradflow
