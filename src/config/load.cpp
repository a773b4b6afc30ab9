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

/// One pass from text to a checked configuration.
class Loader {
 public:
  Loader(const std::string& file) : file_(file) { origins_.otherwise = {shown_path(file), 0}; }

  Config load(std::string_view text, std::span<const std::string> overrides, const FurtherCheck& further) {
    const JsonValue root = read_json(text, file_, faults_);
    if (root.kind == JsonValue::Kind::object)
      assign_group(root, "");
    else
      faults_.add(line_of(file_, root.line), "",
                  fmt::format("must be an object, got {}; write {{}} for a run with every default", described(root)));
    apply_overrides(overrides, config_, origins_, faults_);
    name_after_file();
    find_files();
    config_ = resolved(std::move(config_));
    Examination examination(config_, origins_, faults_);
    check_availability(examination);
    check_combinations(examination);
    if (further) further(examination);
    faults_.raise();
    return std::move(config_);
  }

  Config load_recorded(std::string_view text) {
    const JsonValue root = read_json(text, file_, faults_);
    if (root.kind != JsonValue::Kind::object) faults_.add(line_of(file_, root.line), "", "must be an object");
    assign_group(root, "");
    for (const auto& field : fields())
      if (!origins_.keys.contains(field->key()) && !faults_.full())
        faults_.add(origins_.otherwise, field->key(), "is missing; a run writes every key");
    faults_.raise();
    return std::move(config_);
  }

 private:
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
    const Origin origin = line_of(file_, value.line);
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

  void name_after_file() {
    if (!config_.name.empty() || faults_.concerns("name")) return;
    const std::string stem = std::filesystem::path(file_).stem().string();
    const std::string fault =
        find_field("name")->assign(JsonValue::of_string(stem.empty() ? "unnamed" : stem), config_);
    if (!fault.empty()) faults_.add(origins_.otherwise, "name", "missing, and the file's stem " + fault);
  }

  /// Makes data.files absolute. They are relative to the configuration file; those of --set, which a shell completes,
  /// may also be relative to the current folder.
  void find_files() {
    if (faults_.concerns("data.files")) return;
    const auto written = origins_.keys.find("data.files");
    const Origin& origin = written == origins_.keys.end() ? origins_.otherwise : written->second;
    const bool from_option = origin.text.starts_with("--set");
    std::error_code ignored;
    const auto in = [&](const std::filesystem::path& folder, const std::string& path) {
      return std::filesystem::absolute(folder / path, ignored).lexically_normal();
    };
    for (std::string& path : config_.data.files) {
      // A path typed on the command line is one of the current folder, as for every program.
      const std::filesystem::path found =
          in(from_option ? std::filesystem::path() : std::filesystem::path(file_).parent_path(), path);
      if (const std::string fault = file_fault(found); !fault.empty())
        faults_.add(
            origin, "data.files",
            fmt::format("{} {}, looked for at {}; write a path relative to the {}, or an absolute one", in_quotes(path),
                        fault, shown_path(found.string()), from_option ? "current folder" : "configuration file"));
      path = found.string();
    }
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

  const std::string& file_;
  Config config_;
  Origins origins_;
  Faults faults_;
};

}  // namespace

Config load_config(const std::string& path, std::span<const std::string> overrides, const FurtherCheck& further) {
  return parse_config(read_file(path), path, overrides, further);
}

Config parse_config(std::string_view text, const std::string& file, std::span<const std::string> overrides,
                    const FurtherCheck& further) {
  return Loader(file).load(text, overrides, further);
}

Config parse_recorded_config(std::string_view text, const std::string& file) {
  return Loader(file).load_recorded(text);
}

void validate(const Config& config) {
  Json json = to_json(config);
  if (config.name.empty()) json.erase("name");
  parse_config(json.dump(-1, ' ', false, Json::error_handler_t::replace), "");
}

}  // namespace gradflow
