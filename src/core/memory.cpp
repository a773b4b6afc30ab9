#include "core/memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string_view>

#include "core/numbers.h"

namespace gradflow {
namespace {

/// The whole text; empty where there is no such file.
std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

/// The number behind `key` in lines like "MemAvailable:  123 kB" or "inactive_file 123".
std::optional<std::int64_t> number_after(const std::string& text, std::string_view key) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    std::int64_t value = 0;
    if (words >> name && name == key && words >> value) return value;
  }
  return std::nullopt;
}

std::optional<std::int64_t> number_in(const std::string& path) {
  std::int64_t value = 0;
  std::ifstream file(path);
  return file >> value ? std::optional(value) : std::nullopt;
}

/// What the files of one control group are called: version 2, and version 1's memory controller.
struct GroupFiles {
  const char* mount;
  const char* limit;
  const char* usage;
  const char* cache;  ///< in memory.stat: file pages that the kernel drops before it runs out
};
constexpr GroupFiles version_2{"/sys/fs/cgroup", "/memory.max", "/memory.current", "inactive_file"};
constexpr GroupFiles version_1{"/sys/fs/cgroup/memory", "/memory.limit_in_bytes", "/memory.usage_in_bytes",
                               "total_inactive_file"};

/// The least that the group and those around it leave.
std::optional<std::int64_t> left_in_group(const std::string& root, const GroupFiles& files, std::string group) {
  std::optional<std::int64_t> least;
  while (true) {
    const std::string folder = root + files.mount + group;
    const auto limit = number_in(folder + files.limit), usage = number_in(folder + files.usage);
    if (limit && usage) {  // "max" is no number: no limit
      const std::int64_t cache = number_after(text_of(folder + "/memory.stat"), files.cache).value_or(0);
      const std::int64_t left = std::max<std::int64_t>(*limit - *usage + cache, 0);
      least = std::min(least.value_or(left), left);
    }
    if (group.empty()) return least;
    group.erase(group.rfind('/'));
  }
}

/// Lines "ID:CONTROLLERS:PATH" of /proc/self/cgroup; version 2 has the one without controllers.
std::optional<std::int64_t> left_in_groups(const std::string& root) {
  std::optional<std::int64_t> least;
  std::istringstream lines(text_of(root + "/proc/self/cgroup"));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    std::string group = line.substr(second + 1);
    while (group.ends_with('/')) group.pop_back();
    const bool is_version_2 = controllers == ",,";
    if (!group.empty() && !group.starts_with('/')) continue;
    if (!is_version_2 && controllers.find(",memory,") == std::string::npos) continue;
    if (const auto left = left_in_group(root, is_version_2 ? version_2 : version_1, group))
      least = std::min(least.value_or(*left), *left);
  }
  return least;
}

}  // namespace

std::optional<std::int64_t> available_memory(const std::string& root) {
  const auto kilobytes = number_after(text_of(root + "/proc/meminfo"), "MemAvailable:");
  const auto machine = kilobytes ? std::optional(*kilobytes * 1024) : std::nullopt;
  const auto groups = left_in_groups(root);
  if (machine && groups) return std::min(*machine, *groups);
  return machine ? machine : groups;
}

std::int64_t peak_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
}

std::string bytes_in_words(double bytes) {
  static constexpr std::array units{"B", "kB", "MB", "GB", "TB", "PB"};
  std::size_t unit = 0;
  // 999.5 would be rounded to 1000, which reads better in the next unit.
  while (unit + 1 < units.size() && std::abs(bytes) >= 999.5) {
    bytes /= 1000;
    ++unit;
  }
  return significant(bytes, 3) + " " + units[unit];
}

}  // namespace gradflow
