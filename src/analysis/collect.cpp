#include "analysis/collect.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "analysis/run_series.h"
#include "core/error.h"
#include "core/lines.h"

namespace gradflow {
namespace {

struct FileTable {
  std::string_view name;
  std::span<const Column> (*columns)();
};

constexpr auto file_tables = std::to_array<FileTable>({{"layers", layers_columns},
                                                       {"steps", steps_columns},
                                                       {"spikes", spikes_columns},
                                                       {"timing", timing_columns},
                                                       {"tensors", tensors_columns},
                                                       {"quantities", quantities_columns}});
constexpr std::string_view runs_table = "runs";

Cell word_at(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? Cell{found->get<std::string>()} : Cell{};
}

Cell number_at(const RecordedRun& run, std::string_view pointer) { return cell(run.number(pointer)); }

/// A count stands in the file without a decimal point.
Cell count_at(const RecordedRun& run, std::string_view pointer) {
  const std::optional<double> value = run.number(pointer);
  return value ? Cell{static_cast<std::int64_t>(*value)} : Cell{};
}

constexpr auto columns_of_runs = std::to_array<RunColumn>({
    {"id", "what the run is called in results/", [](const RecordedRun& r) -> Cell { return r.id(); }},
    {"status", "running, finished, diverged, interrupted, failed, or killed: its process is gone",
     [](const RecordedRun& r) -> Cell { return std::string(name_of(r.status)); }},
    {"reason", "why it stands so", [](const RecordedRun& r) -> Cell { return r.reason; }},
    {"verdict", "learned, learning, stuck, worse or diverged; empty without one",
     [](const RecordedRun& r) -> Cell {
       const auto verdict = r.verdict();
       return verdict ? Cell{std::string(name_of(*verdict))} : Cell{};
     }},
    {"steps", "steps made", [](const RecordedRun& r) { return count_at(r, "/steps"); }},
    {"tokens", "tokens seen", [](const RecordedRun& r) { return count_at(r, "/tokens"); }},
    {"first_loss", "loss of the first step", [](const RecordedRun& r) { return number_at(r, "/first_loss"); }},
    {"final_loss", "mean of the last 20 losses", [](const RecordedRun& r) { return number_at(r, "/final_loss"); }},
    {"best_loss", "smallest loss", [](const RecordedRun& r) { return number_at(r, "/best_loss"); }},
    {"best_step", "its step", [](const RecordedRun& r) { return count_at(r, "/best_step"); }},
    {"eval_loss", "latest validation loss", [](const RecordedRun& r) { return number_at(r, "/eval_loss"); }},
    {"unigram_entropy", "H₁, or the loss of the best constant answer",
     [](const RecordedRun& r) { return number_at(r, "/unigram_entropy"); }},
    {"entropy_rate", "smallest loss that can be reached, where it is known",
     [](const RecordedRun& r) { return number_at(r, "/entropy_rate"); }},
    {"loss_spikes", "spike episodes of the loss", [](const RecordedRun& r) { return count_at(r, "/spikes/loss"); }},
    {"grad_norm_spikes", "spike episodes of the gradient norm",
     [](const RecordedRun& r) { return count_at(r, "/spikes/grad_norm"); }},
    {"clipped_steps", "steps whose gradient was clipped",
     [](const RecordedRun& r) { return count_at(r, "/clipped_steps"); }},
    {"skipped_steps", "steps without an update because of a value that is not finite",
     [](const RecordedRun& r) { return count_at(r, "/skipped_steps"); }},
    {"parameters", "number of parameters", [](const RecordedRun& r) { return count_at(r, "/parameters/count"); }},
    {"gradient_ratio_first_step", "‖∂L/∂x‖ after the first block divided by that after the last, at the first step",
     [](const RecordedRun& r) { return number_at(r, "/profiles/first_step/stream_grad_norm/ratio"); }},
    {"gradient_ratio", "the same at the last step",
     [](const RecordedRun& r) { return number_at(r, "/profiles/last_step/stream_grad_norm/ratio"); }},
    {"gradient_rate", "slope of its logarithm for each block away from the output, at the last step",
     [](const RecordedRun& r) { return number_at(r, "/profiles/last_step/stream_grad_norm/rate_per_block"); }},
    {"variance_rate", "slope of the logarithm of the stream's variance for each block, at the last step",
     [](const RecordedRun& r) { return number_at(r, "/profiles/last_step/stream_variance/rate_per_block"); }},
    {"steps_per_second", "steps a second by timing.csv",
     [](const RecordedRun& r) { return cell(steps_per_second(r)); }},
    {"started", "when, UTC", [](const RecordedRun& r) { return word_at(r.manifest, "started"); }},
    {"host", "where", [](const RecordedRun& r) { return word_at(r.manifest, "host"); }},
    {"device", "on what", [](const RecordedRun& r) { return word_at(r.manifest, "device"); }},
    {"git_revision", "by which source", [](const RecordedRun& r) { return word_at(r.manifest, "git_revision"); }},
});

/// What precedes each row of a run: its folder and its values, each followed by a comma.
std::vector<std::string> prefixes_of(const Study& study) {
  std::vector<std::string> prefixes(study.runs.size());
  for (const StudyGroup& group : study.groups)
    for (const std::size_t place : group.runs) {
      std::string& prefix = prefixes[place];
      prefix = csv_text(std::string_view(study.runs[place].path)) + ',';
      if (study.seeds_differ) prefix += std::to_string(study.runs[place].config.seed) + ',';
      for (const std::string& word : group.words) prefix += csv_text(std::string_view(word)) + ',';
    }
  return prefixes;
}

std::string header_prefix(const Study& study) {
  std::string header = "run,";
  if (study.seeds_differ) header += "seed,";
  for (const StudyKey& key : study.keys) header += std::string(key.key) + ',';
  return header;
}

/// Collects until there is enough for one write.
class Pieces {
 public:
  explicit Pieces(const std::function<void(std::string_view)>& write) : write_(write) {}
  void add(std::string_view prefix, std::string_view line) {
    constexpr std::size_t enough = std::size_t{1} << 18;
    text_ += prefix;
    text_ += line;
    text_ += '\n';
    if (text_.size() > enough) flush();
  }
  void flush() {
    write_(text_);
    text_.clear();
  }

 private:
  const std::function<void(std::string_view)>& write_;
  std::string text_;
};

/// Reads the file to its end; the number of its rows. Throws Error when it is damaged.
std::int64_t count_rows(const std::string& path, std::span<const Column> columns) {
  LineReader lines(path);
  const auto header = lines.next();
  if (!header) throw Error(path + ": has no header; the run that should have written it has not begun");
  if (const std::string fault = header_fault(*header, columns); !fault.empty()) throw Error(path + ":1: " + fault);
  std::int64_t rows = 0;
  while (const auto line = lines.next()) {
    ++rows;
    const auto cells = static_cast<std::size_t>(std::count(line->begin(), line->end(), ',')) + 1;
    if (cells != columns.size())
      throw Error(
          fmt::format("{}:{}: has {} cells where the header has {}; the file was changed by something else: "
                      "run again",
                      path, rows + 1, cells, columns.size()));
  }
  return rows;
}

Collected collect_files(const Study& study, const FileTable& table, Pieces& pieces) {
  const std::span<const Column> columns = table.columns();
  const std::string file = std::string(table.name) + ".csv";
  const std::vector<std::string> prefixes = prefixes_of(study);
  Collected collected;
  for (std::size_t i = 0; i < study.runs.size(); ++i) {
    const RecordedRun& run = study.runs[i];
    const std::string path = run.file(file);
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) {
      collected.left_out.push_back({run.path, "it has no " + file});
      continue;
    }
    std::int64_t rows = 0;
    try {
      rows = count_rows(path, columns);
    } catch (const Error& error) {
      collected.left_out.push_back({run.path, error.lines().front()});
      continue;
    }
    if (collected.runs == 0) pieces.add(header_prefix(study), header_line(columns));
    ++collected.runs;
    collected.rows += rows;
    // A run that still writes has perhaps written more by now.
    LineReader lines(path);
    lines.next();
    for (std::int64_t row = 0; row < rows; ++row)
      if (const auto line = lines.next()) pieces.add(prefixes[i], *line);
  }
  return collected;
}

Collected collect_runs(const Study& study, Pieces& pieces) {
  const std::vector<std::string> prefixes = prefixes_of(study);
  std::string header;
  for (const RunColumn& column : columns_of_runs) header += (header.empty() ? "" : ",") + std::string(column.name);
  pieces.add(header_prefix(study), header);
  Collected collected;
  for (std::size_t i = 0; i < study.runs.size(); ++i) {
    std::string line;
    try {
      for (const RunColumn& column : columns_of_runs) line += csv_text(column.cell(study.runs[i])) + ',';
    } catch (const Error& error) {
      collected.left_out.push_back({study.runs[i].path, error.lines().front()});
      continue;
    }
    line.pop_back();
    pieces.add(prefixes[i], line);
    ++collected.runs;
    ++collected.rows;
  }
  return collected;
}

}  // namespace

std::span<const RunColumn> run_columns() { return columns_of_runs; }

std::vector<std::string_view> collectable_tables() {
  std::vector<std::string_view> names;
  for (const FileTable& table : file_tables) names.push_back(table.name);
  names.push_back(runs_table);
  return names;
}

Collected collect(const Study& study, std::string_view table, const std::function<void(std::string_view)>& write) {
  Pieces pieces(write);
  const auto found =
      std::find_if(file_tables.begin(), file_tables.end(), [&](const FileTable& known) { return known.name == table; });
  if (found == file_tables.end() && table != runs_table)
    throw std::logic_error("no table of a run folder: " + std::string(table));
  Collected collected = table == runs_table ? collect_runs(study, pieces) : collect_files(study, *found, pieces);
  pieces.flush();
  return collected;
}

}  // namespace gradflow
