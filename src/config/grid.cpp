#include "config/grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include "config/fields.h"
#include "config/nearest.h"
#include "config/overrides.h"
#include "config/text.h"
#include "core/files.h"

namespace gradflow {
namespace {

constexpr std::size_t most_cells = 100'000;
constexpr auto parts = std::to_array<std::string_view>({"base", "axes", "together", "exclude"});

bool is_object(const JsonValue& value) { return value.kind == JsonValue::Kind::object; }
bool is_list(const JsonValue& value) { return value.kind == JsonValue::Kind::array; }

/// "{"model.depth": …, "seed": …}"
std::string as_object(std::span<const std::string> keys) {
  std::string out;
  for (const std::string& key : keys) out += fmt::format("{}\"{}\": …", out.empty() ? "" : ", ", shown(key));
  return "{" + out + "}";
}

}  // namespace

/// One pass over the text of a grid file.
class Grid::Reader {
 public:
  explicit Reader(Grid& grid) : grid_(grid) {}

  void read() { read(read_json(read_file(grid_.path_), grid_.path_, faults_)); }

  void read(const JsonValue& root) {
    if (!is_object(root)) {
      fault(root, "", fmt::format("must be an object, got {}; write {}", described(root), R"({"axes": {…}})"));
      faults_.raise();
    }
    read_base(root);
    for (std::size_t i = 0; i < root.elements.size(); ++i) check_part(root.names[i], root.elements[i]);
    if (const JsonValue* axes = part(root, "axes")) read_axes(*axes);
    if (const JsonValue* together = part(root, "together")) read_together(*together);
    if (const JsonValue* exclude = part(root, "exclude")) read_exclusions(*exclude);
    read_overrides();
    check_base();
    const std::size_t product = count_cells();
    faults_.raise();
    choose_cells(product);
    faults_.raise();
  }

 private:
  struct Exclusion {
    std::vector<Setting> settings;
    Origin origin;
    bool used = false;
  };

  void fault(const JsonValue& at, std::string_view key, std::string_view what) {
    faults_.add(line_of(grid_.path_, at.line), key, what);
  }

  static const JsonValue* part(const JsonValue& root, std::string_view name) {
    const auto found = std::find(root.names.begin(), root.names.end(), name);
    return found == root.names.end() ? nullptr : &root.elements[static_cast<std::size_t>(found - root.names.begin())];
  }

  void check_part(const std::string& name, const JsonValue& value) {
    if (std::find(parts.begin(), parts.end(), name) != parts.end()) return;
    const auto groups = field_groups();
    if (find_field(name) || std::find(groups.begin(), groups.end(), name) != groups.end())
      return fault(value, name,
                   "is a key of the runs; write it inside \"base\", or under \"axes\" with a list of values");
    const std::string_view nearest = nearest_word(name, parts);
    fault(value, name,
          is_near(name, nearest) ? fmt::format("no part of a grid; did you mean {}?", nearest)
                                 : fmt::format("no part of a grid; there are {}", listed(parts)));
  }

  void read_base(const JsonValue& root) {
    grid_.base_.kind = JsonValue::Kind::object;
    const JsonValue* base = part(root, "base");
    if (base == nullptr) return;
    if (is_object(*base)) {
      grid_.base_ = *base;
    } else if (base->kind == JsonValue::Kind::string) {
      const auto file = (std::filesystem::path(grid_.path_).parent_path() / base->text).lexically_normal();
      try {
        grid_.base_ = read_json(read_file(file.string()), file.string(), faults_);
        grid_.base_file_ = file.string();
      } catch (const Error& error) {
        for (const std::string& line : error.lines()) fault(*base, "base", line);
      }
    } else {
      fault(
          *base, "base",
          fmt::format("must be the name of a configuration file or a configuration, got {}; write \"my.json\" or {{…}}",
                      described(*base)));
    }
  }

  /// The key, when it is one that a grid can vary.
  const Field* field_of(const JsonValue& at, const std::string& key) {
    const Field* field = find_field(key);
    if (field == nullptr) {
      const std::string inside = key + ".";
      for (const auto& other : fields())
        if (other->key().starts_with(inside)) {
          fault(at, key, fmt::format("is a group of keys; write one of its keys, such as \"{}\"", other->key()));
          return nullptr;
        }
      fault(at, key, "unknown key; " + did_you_mean(nearest_keys(key, false)));
    } else if (key == "name") {
      fault(at, key, "cannot be an axis, because the runs of a grid stand in one folder; leave it out");
      return nullptr;
    }
    return field;
  }

  /// The value for that key, looked at by itself.
  std::optional<Setting> setting(const std::string& key, const Field& field, const JsonValue& value) {
    Config scratch;
    const Origin origin = line_of(grid_.path_, value.line);
    if (const std::string what = field.assign(value, scratch); !what.empty()) {
      faults_.add(origin, key, what);
      return std::nullopt;
    }
    return Setting{key, value, origin};
  }

  /// Whether no other axis has the key; notes it.
  bool is_new_axis(const JsonValue& at, const std::string& key) {
    const auto [first, is_new] = lines_.emplace(key, at.line);
    if (!is_new) fault(at, key, fmt::format("is an axis already, on line {}; keep one of the two", first->second));
    return is_new;
  }

  void read_axes(const JsonValue& axes) {
    if (!is_object(axes))
      return fault(
          axes, "axes",
          fmt::format("must be an object, got {}; write {}", described(axes), R"({"model.depth": [6, 12], …})"));
    for (std::size_t i = 0; i < axes.elements.size(); ++i) {
      const std::string& key = axes.names[i];
      const JsonValue& values = axes.elements[i];
      const auto before = axes.names.begin() + static_cast<std::ptrdiff_t>(i);
      if (std::find(axes.names.begin(), before, key) != before) continue;  // the reader has named it as repeated
      const Field* field = field_of(values, key);
      if (field == nullptr || !is_new_axis(values, key)) continue;
      if (!is_list(values)) {
        fault(values, key,
              fmt::format("must be a list of values, got {}; write [{}]", described(values),
                          is_object(values) ? "…" : json_text(values)));
        continue;
      }
      if (values.elements.empty()) {
        fault(values, key, "an axis without values; write at least one, or leave it out");
        continue;
      }
      Axis axis;
      for (const JsonValue& value : values.elements)
        if (auto read = setting(key, *field, value)) axis.push_back({std::move(*read)});
      grid_.axes_.push_back(std::move(axis));
    }
  }

  void read_together(const JsonValue& together) {
    constexpr std::string_view written = R"([[{"model.depth": 6, "train.batch": 8}, {…}], …])";
    if (!is_list(together))
      return fault(together, "together",
                   fmt::format("must be a list of lists, got {}; write {}", described(together), written));
    for (const JsonValue& list : together.elements) {
      if (!is_list(list))
        fault(list, "together",
              fmt::format("must hold lists, got {}; write {}, each inner list one axis", described(list), written));
      else if (list.elements.empty())
        fault(list, "together", "an axis without values; write at least one, or leave it out");
      else
        read_zipped(list);
    }
  }

  /// One axis of several keys.
  void read_zipped(const JsonValue& list) {
    const JsonValue& first = list.elements.front();
    Axis axis;
    bool good = true;
    for (const JsonValue& entry : list.elements) {
      if (!is_object(entry) || entry.elements.empty()) {
        fault(entry, "together",
              fmt::format("an entry must be an object with keys, got {}; write {{\"model.depth\": 6, …}}",
                          is_object(entry) ? "an empty one" : described(entry)));
        good = false;
      } else if (is_object(first) && !same_keys(entry, first)) {
        fault(entry, "together",
              fmt::format("an entry has the keys {}, the first of its list {}; give every entry the same keys",
                          as_object(entry.names), as_object(first.names)));
        good = false;
      } else {
        std::vector<Setting> settings;
        for (const std::string& key : first.names) {
          const JsonValue& value = *part(entry, key);
          const Field* field = &entry == &first ? field_of(value, key) : find_field(key);
          if (&entry == &first && field != nullptr) good = is_new_axis(value, key) && good;
          if (field == nullptr || key == "name") continue;
          if (auto read = setting(key, *field, value)) settings.push_back(std::move(*read));
        }
        axis.push_back(std::move(settings));
      }
    }
    if (good) grid_.axes_.push_back(std::move(axis));
  }

  static bool same_keys(const JsonValue& a, const JsonValue& b) {
    auto left = a.names, right = b.names;
    std::sort(left.begin(), left.end());
    std::sort(right.begin(), right.end());
    return left == right;
  }

  void read_exclusions(const JsonValue& exclude) {
    if (!is_list(exclude))
      return fault(exclude, "exclude",
                   fmt::format("must be a list of objects, got {}; write {}", described(exclude),
                               R"([{"model.placement": "post", "model.depth": 12}])"));
    for (const JsonValue& entry : exclude.elements) {
      if (!is_object(entry) || entry.elements.empty()) {
        fault(entry, "exclude",
              fmt::format("an entry must be an object with keys, got {}; write {{\"model.depth\": 12, …}}",
                          is_object(entry) ? "an empty one, which would drop every cell" : described(entry)));
        continue;
      }
      Exclusion exclusion{.settings = {}, .origin = line_of(grid_.path_, entry.line)};
      for (std::size_t i = 0; i < entry.elements.size(); ++i)
        if (const Field* field = field_of(entry.elements[i], entry.names[i]))
          if (auto read = setting(entry.names[i], *field, entry.elements[i]))
            exclusion.settings.push_back(std::move(*read));
      exclusions_.push_back(std::move(exclusion));
    }
  }

  /// An option that fixes what an axis varies would make its cells equal.
  void read_overrides() {
    std::vector<std::string_view> keys;
    for (const auto& field : fields()) keys.push_back(field->key());
    for (std::size_t i = 0; i < grid_.overrides_.size(); ++i) {
      const std::string_view given = std::string_view(grid_.overrides_[i]).substr(0, grid_.overrides_[i].find('='));
      const auto meant = keys_meant(given, keys);
      if (meant.size() != 1) continue;
      const auto axis = lines_.find(meant[0]);
      if (axis != lines_.end())
        faults_.add(option_named(given, i), meant[0],
                    fmt::format("is an axis of the grid ({}); leave the option out, or the axis",
                                line_of(grid_.path_, axis->second).text));
    }
  }

  /// What is wrong with the base is said once, not for every cell.
  void check_base() {
    Origins origins;
    assembled(grid_.sources({}), origins, faults_);
  }

  std::size_t count_cells() {
    std::size_t product = 1;
    for (const Axis& axis : grid_.axes_) {
      if (axis.empty()) return 0;  // its faults are known
      if (axis.size() > most_cells / product) {
        faults_.add({shown_path(grid_.path_), 0}, "",
                    fmt::format("has more than {} cells; write fewer axes or values", most_cells));
        return 0;
      }
      product *= axis.size();
    }
    return product;
  }

  void choose_cells(std::size_t product) {
    for (std::size_t position = 0; position < product; ++position)
      if (exclusions_.empty() || !is_excluded(position)) grid_.cells_.push_back(position);
    for (const Exclusion& exclusion : exclusions_)
      if (!exclusion.used)
        grid_.warnings_.push_back(exclusion.origin.text + ": exclude: matches no cell; correct or remove it");
    if (grid_.cells_.empty()) faults_.add({shown_path(grid_.path_), 0}, "exclude", "leaves no cell; exclude less");
  }

  bool is_excluded(std::size_t position) {
    Origins origins;
    Faults ignored;  // a cell that is excluded may be impossible
    const std::vector<Setting> settings = grid_.settings_of(position);
    const Config cell = assembled(grid_.sources(settings), origins, ignored);
    bool excluded = false;
    for (Exclusion& exclusion : exclusions_)
      if (matches(cell, exclusion.settings)) excluded = exclusion.used = true;
    return excluded;
  }

  /// Compared as values: 1e-3 is 0.001.
  bool matches(const Config& cell, const std::vector<Setting>& settings) const {
    return std::all_of(settings.begin(), settings.end(), [&](const Setting& setting) {
      const Field& field = *find_field(setting.key);
      Config wanted = cell;
      field.assign(setting.value, wanted);
      if (setting.key == "data.files")
        for (std::string& file : wanted.data.files)
          file = std::filesystem::absolute(std::filesystem::path(grid_.path_).parent_path() / file)
                     .lexically_normal()
                     .string();
      return field.value(wanted) == field.value(cell);
    });
  }

  Grid& grid_;
  Faults faults_;
  std::map<std::string, std::int64_t, std::less<>> lines_;  ///< of every key that is an axis
  std::vector<Exclusion> exclusions_;
};

Grid::Grid(const std::string& path, std::span<const std::string> overrides)
    : path_(path), overrides_(overrides.begin(), overrides.end()) {
  Reader(*this).read();
}

Grid::Grid(const JsonValue& grid, std::string path) : path_(std::move(path)) { Reader(*this).read(grid); }

std::vector<std::string_view> Grid::keys() const {
  std::vector<std::string_view> keys;
  for (const Axis& axis : axes_)
    for (const Setting& setting : axis.front()) keys.push_back(setting.key);
  return keys;
}

std::vector<Setting> Grid::settings_of(std::size_t position) const {
  std::vector<const std::vector<Setting>*> entries;
  for (auto axis = axes_.rbegin(); axis != axes_.rend(); ++axis) {
    entries.push_back(&(*axis)[position % axis->size()]);
    position /= axis->size();
  }
  std::vector<Setting> settings;
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry)
    settings.insert(settings.end(), (*entry)->begin(), (*entry)->end());
  return settings;
}

std::vector<Setting> Grid::settings(std::size_t cell) const { return settings_of(cells_.at(cell)); }

std::string Grid::label(std::size_t cell) const {
  std::string out;
  for (const Setting& setting : settings(cell))
    out += fmt::format("{}{}={}", out.empty() ? "" : " ", setting.key, shown(option_text(setting.value)));
  return out.empty() ? "the base" : out;
}

ConfigSources Grid::sources(std::span<const Setting> settings) const {
  return {.root = base_,
          .file = base_file_.empty() ? path_ : base_file_,
          .settings = settings,
          .settings_file = path_,
          .overrides = overrides_};
}

Config Grid::config(std::size_t cell, const FurtherCheck& further) const {
  const std::vector<Setting> chosen = settings(cell);
  return load_sources(sources(chosen), further);
}

}  // namespace gradflow
