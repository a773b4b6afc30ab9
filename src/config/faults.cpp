#include "config/faults.h"

#include <fmt/format.h>

#include <algorithm>

#include "config/text.h"
#include "core/error.h"

namespace gradflow {

Origin line_of(std::string_view file, std::int64_t line) {
  return {file.empty() ? std::string() : fmt::format("{}:{}", shown_path(file), line), line};
}

Origin option_named(std::string_view key, std::size_t position) {
  constexpr std::int64_t after_every_line = std::int64_t{1} << 40;
  return {"--set " + shown(key), after_every_line + static_cast<std::int64_t>(position)};
}

void Faults::add(const Origin& origin, std::string_view key, std::string_view fault) {
  keys_.emplace(key);
  if (full()) return;
  std::string line = origin.text.empty() ? "" : origin.text + ": ";
  if (!key.empty() && origin.text != fmt::format("--set {}", key)) line += shown(key) + ": ";
  lines_.emplace_back(origin.order, line + std::string(fault));
}

bool Faults::concern_keys(std::string_view prefix) const {
  const auto found = keys_.lower_bound(prefix);
  return concerns("") || (found != keys_.end() && found->starts_with(prefix));
}

void Faults::raise() const {
  if (lines_.empty()) return;
  auto sorted = lines_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> lines;
  for (auto& [order, line] : sorted) lines.push_back(std::move(line));
  if (full()) lines.push_back("there may be more; correct these first");
  throw Error(std::move(lines));
}

}  // namespace gradflow
