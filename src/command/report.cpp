#include "report/report.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "analysis/find_runs.h"
#include "command/command.h"
#include "core/files.h"
#include "report/markdown.h"
#include "report/number_text.h"
#include "report/page.h"
#include "report/pictures.h"
#include "report/probe_section.h"

namespace gradflow {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::vector<std::string> paths;
  std::string out;
  std::string title;
  bool static_pictures = false;
};

/// A word as a shell takes it.
std::string shell_word(const std::string& word) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=+,:@%";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

std::string command_of(const Options& options) {
  std::string command = "gradflow report";
  for (const std::string& path : options.paths) command += " " + shell_word(path);
  if (!options.out.empty()) command += " --out " + shell_word(options.out);
  if (!options.title.empty()) command += " --title " + shell_word(options.title);
  return command + (options.static_pictures ? " --static" : "");
}

/// The name of the folder that was given: "placements" of "results/placements/". Of several, of their common parent
/// where it has a name, else "report".
std::string default_title(const std::vector<std::string>& paths) {
  const auto name = [](const fs::path& path) {
    const fs::path whole = fs::absolute(path).lexically_normal();
    return (whole.has_filename() ? whole : whole.parent_path()).filename().string();
  };
  if (paths.size() == 1) return name(paths.front());
  const fs::path parent = fs::absolute(paths.front()).lexically_normal().parent_path();
  for (const std::string& path : paths)
    if (fs::absolute(path).lexically_normal().parent_path() != parent) return "report";
  return parent.has_filename() ? name(parent) : "report";
}

std::string size_text(std::size_t bytes) {
  return bytes < 1'000'000 ? fmt::format("{} kB", (bytes + 999) / 1000)
                           : fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

Exit run(const Options& options) {
  FoundRuns found = find_runs(options.paths);
  for (const LeftOut& left_out : found.left_out) fmt::print(stderr, "gradflow: warning: {}\n", text_of(left_out));
  if (found.probes.empty()) require_runs(found);

  Study study = found.runs.empty() ? Study{} : make_study(std::move(found.runs));
  for (const LeftOut& repeated : study.repeated) fmt::print(stderr, "gradflow: warning: {}\n", text_of(repeated));
  std::vector<LeftOut> left_out = std::move(found.left_out);
  left_out.insert(left_out.end(), study.repeated.begin(), study.repeated.end());

  Report report =
      make_report(std::move(study), options.title.empty() ? default_title(options.paths) : options.title, found.probes);
  for (const LeftOut& damaged : report.left_out) fmt::print(stderr, "gradflow: warning: {}\n", text_of(damaged));
  report.left_out.insert(report.left_out.begin(), left_out.begin(), left_out.end());
  report.command = command_of(options);

  const ReportAssets assets = options.static_pictures ? report_assets().without_charts() : report_assets();
  const std::string page = page_html(report, assets);
  std::vector<Picture> pictures = static_pictures(report);
  for (Picture& picture : probe_pictures(report)) pictures.push_back(std::move(picture));

  const std::string out = !options.out.empty()        ? options.out
                          : options.paths.size() == 1 ? options.paths.front()
                                                      : "report";
  create_folders(out);
  const auto file = [&](const std::string& name) { return (fs::path(out) / name).string(); };
  for (const Picture& picture : pictures) write_file_atomically(file(picture.file), picture.svg);
  write_file_atomically(file("report.md"), report_markdown(report, pictures));
  write_file_atomically(file("report.html"), page);
  std::vector<std::string> shown;
  if (!report.runs.empty()) shown.push_back(counted(report.runs.size(), "run"));
  if (!report.probes.empty()) shown.push_back(counted(report.probes.size(), "probe"));
  fmt::print("{}: {}, {}; report.md and {} SVG pictures beside it\n", file("report.html"), listed(shown),
             size_text(page.size()), pictures.size());
  if (!report.runs.empty() && !assets.interactive() && !options.static_pictures)
    fmt::print(stderr, "gradflow: note: built without uPlot, line pictures are static; scripts/setup fetches it\n");
  return Exit::done;
}

}  // namespace

void add_report(CLI::App& program, Action& action) {
  CLI::App* command = program.add_subcommand("report", "one HTML page with the pictures of many runs, opens from disk");
  auto options = std::make_shared<Options>();
  command->add_option("PATH", options->paths, "folders of runs and probes, or folders that hold them at any depth")
      ->required()
      ->type_name("");
  command
      ->add_option("--out", options->out,
                   "folder for report.html, report.md and the SVG pictures; without it PATH, or report/ for several")
      ->type_name("DIR");
  command->add_option("--title", options->title, "first words of the heading; without it the folder's name")
      ->type_name("TEXT");
  command->add_flag("--static", options->static_pictures,
                    "line pictures of the page as static SVG too, without hover and zoom");
  command->footer(
      "report.html needs no network and no other file. Colour means the placement, a panel is a depth, a mark a seed; "
      "other\n"
      "keys that differ become selects. Unfinished runs are shown as such; folders that cannot be used are named and "
      "left out.");
  command->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace gradflow
