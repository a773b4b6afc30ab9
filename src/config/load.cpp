#include "config/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "config/fields.h"
#include "config/json_reader.h"
#include "config/nearest.h"
#include "config/overrides.h"
#include "config/resolved.h"
#include "config/rules.h"
#include "config/text.h"
#include "core/files.h"

namespace gradflow {
namespace {

/// One pass from values to a configuration.
class Loader {
 public:
  Loader(const ConfigSources& sources, Origins& origins, Faults& faults)
      : sources_(sources), origins_(origins), faults_(faults), files_folder_(folder_of(sources.file)) {
    origins_.otherwise = {shown_path(sources.settings_file.empty() ? sources.file : sources.settings_file), 0};
  }

  Config assemble() {
    const JsonValue& root = sources_.root;
    if (root.kind == JsonValue::Kind::object)
      assign_group(root, "");
    else
      faults_.add(line_of(sources_.file, root.line), "",
                  fmt::format("must be an object, got {}; write {{}} for a run with every default", described(root)));
    for (const Setting& setting : sources_.settings) assign_setting(setting);
    apply_overrides(sources_.overrides, config_, origins_, faults_);
    name_after_file();
    find_files();
    return resolved(std::move(config_));
  }

  /// Nothing but what is written, and all of it must be.
  Config assemble_recorded() {
    const JsonValue& root = sources_.root;
    if (root.kind != JsonValue::Kind::object) faults_.add(line_of(sources_.file, root.line), "", "must be an object");
    assign_group(root, "");
    for (const auto& field : fields())
      if (!origins_.keys.contains(field->key()) && !faults_.full())
        faults_.add(origins_.otherwise, field->key(), "is missing; a run writes every key");
    return std::move(config_);
  }

 private:
  static std::filesystem::path folder_of(const std::string& file) { return std::filesystem::path(file).parent_path(); }

  /// Nests as deep as the known groups do, not as deep as the text.
  void assign_group(const JsonValue& group, const std::string& prefix) {
    for (std::size_t i = 0; i < group.elements.size() && !faults_.full(); ++i) {
      const std::string& name = group.names[i];
      if (prefix.empty() && name == "derived") continue;
      assign_key(group.elements[i], prefix, name);
    }
  }

  void assign_key(const JsonValue& value, const std::string& prefix, const std::string& name) {
    const std::string path = prefix + name;
    const Origin origin = line_of(sources_.file, value.line);
    const auto groups = field_groups();
    const bool is_object = value.kind == JsonValue::Kind::object;
    const bool dotted = name.find('.') != std::string::npos;
    if (!dotted && std::find(groups.begin(), groups.end(), path) != groups.end()) {
      if (is_object) return assign_group(value, path + ".");
      return faults_.add(
          origin, path,
          fmt::format("must be an object with keys, got {}; write \"{}\": {{…}}", described(value), name));
    }
    const Field* field = dotted ? nullptr : find_field(path);
    if (!field) return faults_.add(origin, path, "unknown key; " + did_you_mean_in_file(path, is_object && !dotted));
    origins_.keys[path] = origin;
    if (const std::string fault = field->assign(value, config_); !fault.empty()) faults_.add(origin, path, fault);
  }

  void assign_setting(const Setting& setting) {
    origins_.keys[setting.key] = setting.origin;
    if (setting.key == "data.files") files_folder_ = folder_of(sources_.settings_file);
    if (const std::string fault = find_field(setting.key)->assign(setting.value, config_); !fault.empty())
      faults_.add(setting.origin, setting.key, fault);
  }

  void name_after_file() {
    if (!config_.name.empty() || faults_.concerns("name")) return;
    const std::string& file = sources_.settings_file.empty() ? sources_.file : sources_.settings_file;
    const std::string stem = std::filesystem::path(file).stem().string();
    const std::string fault =
        find_field("name")->assign(JsonValue::of_string(stem.empty() ? "unnamed" : stem), config_);
    if (!fault.empty()) faults_.add(origins_.otherwise, "name", "missing, and the file's stem " + fault);
  }

  /// Makes data.files absolute. They are relative to the file where they were written, those of --set, which a shell
  /// completes, to the current folder.
  void find_files() {
    if (faults_.concerns("data.files")) return;
    const auto written = origins_.keys.find("data.files");
    const Origin& origin = written == origins_.keys.end() ? origins_.otherwise : written->second;
    const bool from_option = origin.text.starts_with("--set");
    const std::filesystem::path folder = from_option ? std::filesystem::path() : files_folder_;
    for (std::string& path : config_.data.files) {
      const std::filesystem::path found = absolute_path(folder / path);
      if (const std::string fault = file_fault(found); !fault.empty())
        faults_.add(
            origin, "data.files",
            fmt::format("{} {}, looked for at {}; write a path relative to the {}, or an absolute one", in_quotes(path),
                        fault, shown_path(found.string()), from_option ? "current folder" : "configuration file"));
      path = found.string();
    }
  }

  static std::filesystem::path absolute_path(const std::filesystem::path& path) {
    std::error_code ignored;
    return std::filesystem::absolute(path, ignored).lexically_normal();
  }

  static std::string file_fault(const std::filesystem::path& path) {
    std::error_code error;
    const auto status = std::filesystem::status(path, error);
    if (!std::filesystem::exists(status)) return "does not exist";
    if (std::filesystem::is_directory(status)) return "is a folder, not a file";
    if (!std::filesystem::is_regular_file(status)) return "is a device or a pipe, not a file";
    if (!std::ifstream(path)) return "cannot be read";
    if (first_invalid_utf8(path.string())) return "lies in a folder whose name is not UTF-8";
    return "";
  }

  const ConfigSources& sources_;
  Origins& origins_;
  Faults& faults_;
  Config config_;
  std::filesystem::path files_folder_;
};

Config checked(const ConfigSources& sources, Faults& faults, const FurtherCheck& further) {
  Origins origins;
  Config config = assembled(sources, origins, faults);
  Examination examination(config, origins, faults);
  check_combinations(examination);
  check_backend(examination);
  if (further) further(examination);
  faults.raise();
  return config;
}

}  // namespace

Config assembled(const ConfigSources& sources, Origins& origins, Faults& faults) {
  return Loader(sources, origins, faults).assemble();
}

Config load_sources(const ConfigSources& sources, const FurtherCheck& further) {
  Faults faults;
  return checked(sources, faults, further);
}

Config load_config(const std::string& path, std::span<const std::string> overrides, const FurtherCheck& further) {
  if (path.starts_with('{')) return parse_config(path, "", overrides, further);
  return parse_config(read_file(path), path, overrides, further);
}

Config parse_config(std::string_view text, const std::string& file, std::span<const std::string> overrides,
                    const FurtherCheck& further) {
  Faults faults;
  const JsonValue root = read_json(text, file, faults);
  return checked({.root = root, .file = file, .overrides = overrides}, faults, further);
}

Config parse_recorded_config(std::string_view text, const std::string& file) {
  Faults faults;
  Origins origins;
  const JsonValue root = read_json(text, file, faults);
  const Config config = Loader({.root = root, .file = file}, origins, faults).assemble_recorded();
  faults.raise();
  return config;
}

void validate(const Config& config) {
  Json json = to_json(config);
  if (config.name.empty()) json.erase("name");
  parse_config(json.dump(-1, ' ', false, Json::error_handler_t::replace), "");
}

}  // namespace gradflow
