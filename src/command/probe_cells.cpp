#include "command/probe_cells.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "command/command.h"
#include "config/load.h"
#include "config/nearest.h"
#include "config/text.h"
#include "core/error.h"

namespace gradflow {
namespace {

/// One axis: a key, its values as texts, and the option that gave them.
struct Axis {
  std::string key;
  std::vector<std::string> values;

  /// "placement" of "model.placement".
  std::string name() const { return key.substr(key.rfind('.') + 1); }
};

std::string quantities_override(const std::vector<std::string>& names) {
  return "record.quantities=" + nlohmann::json(names).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// Refuses a word that the key does not have, naming the option.
template <class Choice>
void check_words(std::string_view option, const std::vector<std::string>& words, std::vector<std::string>& faults) {
  constexpr auto names = names_of(Choice{});
  for (const std::string& word : words) {
    if (choice_named<Choice>(word)) continue;
    const std::string_view nearest = nearest_word(word, names);
    faults.push_back(fmt::format("{}: {} is none{}; write one of {}", option, in_quotes(word),
                                 is_near(word, nearest) ? fmt::format(" (the nearest is {})", nearest) : "",
                                 listed(names)));
  }
}

/// Refuses what record.quantities does not take, naming the option.
void check_quantities(const std::vector<std::string>& names, std::vector<std::string>& faults) {
  try {
    parse_config("{}", "", std::vector<std::string>{quantities_override(names)});
  } catch (const Error& error) {
    const Error named = named_by_options(error, {{"--quantities", "record.quantities"}});
    faults.insert(faults.end(), named.lines().begin(), named.lines().end());
  }
}

void check(const ProbeAxes& axes) {
  std::vector<std::string> faults;
  check_words<Placement>("--placements", axes.placements, faults);
  check_words<Norm>("--norms", axes.norms, faults);
  check_words<Residual>("--residuals", axes.residuals, faults);
  check_words<Initialization>("--initializations", axes.initializations, faults);
  for (const std::int64_t depth : axes.depths)
    if (depth < 1) faults.push_back(fmt::format("--depths: {} is no number of blocks; write at least 1", depth));
  if (!axes.quantities.empty()) check_quantities(axes.quantities, faults);
  if (!faults.empty()) throw Error(std::move(faults), Exit::usage);
}

/// "--set KEY: fault" without its option, which the user did not write.
std::string without_option(const std::string& line) {
  constexpr std::string_view option = "--set ";
  return line.starts_with(option) ? line.substr(option.size()) : line;
}

class Builder {
 public:
  Builder(const std::string& path, std::span<const std::string> overrides, const ProbeAxes& axes,
          std::vector<std::string>& refused)
      : path_(path), overrides_(overrides.begin(), overrides.end()), refused_(refused) {
    const auto add = [&](const char* key, const std::vector<std::string>& values) {
      if (!values.empty()) axes_.push_back({key, values});
    };
    add("model.placement", axes.placements);
    add("model.norm", axes.norms);
    add("model.residual", axes.residuals);
    add("model.initialization", axes.initializations);
    std::vector<std::string> depths;
    for (const std::int64_t depth : axes.depths) depths.push_back(std::to_string(depth));
    add("model.depth", depths);
    if (!axes.quantities.empty()) overrides_.push_back(quantities_override(axes.quantities));
  }

  std::vector<Config> build() {
    // Faults that no axis has a part in are those of the file, and end everything.
    if (axes_.empty()) return {load_config(path_, overrides_)};
    descend(0, overrides_, "");
    return std::move(cells_);
  }

 private:
  void descend(std::size_t axis, const std::vector<std::string>& overrides, const std::string& label) {
    if (axis == axes_.size()) return load(overrides, label);
    for (const std::string& value : axes_[axis].values) {
      std::vector<std::string> more = overrides;
      more.push_back(axes_[axis].key + "=" + value);
      descend(axis + 1, more, label + (label.empty() ? "" : " ") + axes_[axis].name() + "=" + value);
    }
  }

  void load(const std::vector<std::string>& overrides, const std::string& label) {
    try {
      cells_.push_back(load_config(path_, overrides));
    } catch (const Error& error) {
      for (const std::string& line : error.lines()) refused_.push_back(label + ": " + without_option(line));
    }
  }

  const std::string& path_;
  std::vector<std::string> overrides_;
  std::vector<Axis> axes_;
  std::vector<Config> cells_;
  std::vector<std::string>& refused_;
};

}  // namespace

std::vector<Config> probe_cells(const std::string& path, std::span<const std::string> overrides, const ProbeAxes& axes,
                                std::vector<std::string>& refused) {
  check(axes);
  return Builder(path, overrides, axes, refused).build();
}

}  // namespace gradflow
