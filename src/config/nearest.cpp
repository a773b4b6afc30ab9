#include "config/nearest.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

#include "config/fields.h"

namespace gradflow {
namespace {

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

std::string_view parent_of(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : path.substr(0, dot);
}

/// How far a key is from what was written; a key at another level counts as a little further away.
double distance(std::string_view path, std::string_view key, std::span<const std::string_view> also_called) {
  const std::string_view last = last_component(path);
  const bool same_level = parent_of(path) == parent_of(key);
  const bool other_name = std::find(also_called.begin(), also_called.end(), last) != also_called.end();
  const double spelling = other_name ? 0.25 : static_cast<double>(edit_distance(last, last_component(key)));
  return std::min(spelling + (same_level ? 0 : 0.5), static_cast<double>(edit_distance(path, key)));
}

/// "model": {"depth": …
std::string nested(std::string_view key) {
  std::string out;
  std::string closing;
  while (true) {
    const std::size_t dot = key.find('.');
    out += fmt::format("\"{}\": ", key.substr(0, dot));
    if (dot == std::string_view::npos) return out + "…" + closing;
    out += "{";
    closing += "}";
    key.remove_prefix(dot + 1);
  }
}

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  a = a.substr(0, 64);
  b = b.substr(0, 64);
  std::array<std::array<std::size_t, 65>, 65> cost{};
  for (std::size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) cost[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i)
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool equal = lower(a[i - 1]) == lower(b[j - 1]);
      std::size_t best = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, cost[i - 1][j - 1] + (equal ? 0 : 1)});
      if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]))
        best = std::min(best, cost[i - 2][j - 2] + 1);
      cost[i][j] = best;
    }
  return cost[a.size()][b.size()];
}

namespace {

/// Who stops in the middle of a word means that word.
bool begins(std::string_view word, std::string_view whole) { return word.size() >= 4 && whole.starts_with(word); }

}  // namespace

std::string_view nearest_word(std::string_view word, std::span<const std::string_view> words) {
  const auto distance_to = [&](std::string_view other) { return begins(word, other) ? 0 : edit_distance(word, other); };
  return *std::min_element(words.begin(), words.end(),
                           [&](std::string_view a, std::string_view b) { return distance_to(a) < distance_to(b); });
}

bool is_near(std::string_view word, std::string_view nearest) {
  return begins(word, nearest) || edit_distance(word, nearest) <= std::max<std::size_t>(1, nearest.size() / 3);
}

std::vector<std::string_view> nearest_keys(std::string_view path, bool is_group) {
  std::vector<std::string_view> best;
  double least = 1e9;
  const auto consider = [&](std::string_view key, std::span<const std::string_view> also_called) {
    const double d = distance(path, key, also_called);
    if (d < least) best.clear();
    if (d <= least) best.push_back(key);
    least = std::min(least, d);
  };
  if (is_group)
    for (const std::string_view group : field_groups()) consider(group, {});
  else
    for (const auto& field : fields()) consider(field->key(), field->also_called());
  constexpr std::size_t most = 3;
  if (best.size() > most) best.resize(most);
  return best;
}

std::string did_you_mean(std::span<const std::string_view> keys) {
  return fmt::format("did you mean {}?", fmt::join(keys, " or "));
}

std::string did_you_mean_in_file(std::string_view path, bool is_group) {
  const auto keys = nearest_keys(path, is_group);
  const bool same_level = parent_of(path) == parent_of(keys[0]) && path != keys[0];
  if (keys.size() > 1 || same_level) return did_you_mean(keys);
  return fmt::format("did you mean {}, written {}?", keys[0], nested(keys[0]));
}

}  // namespace gradflow
