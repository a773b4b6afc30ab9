#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/files.h"
#include "output/csv_table.h"
#include "testing/program.h"
#include "testing/temporary_folder.h"

// For the files that test the whole program; they are compiled with GRADFLOW_PROGRAM, its path.

namespace gradflow::testing {

using Words = std::vector<std::string>;

inline Words operator+(Words left, const Words& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

inline Outcome run_gradflow(const Words& arguments, const Surroundings& surroundings = {}) {
  return RunningProgram(GRADFLOW_PROGRAM, arguments, surroundings).wait();
}

/// Whether the program sees a CUDA device.
inline bool has_cuda() { return run_gradflow({"info"}).out.find("cuda:0") != std::string::npos; }

inline Words lines_of(const std::string& path) {
  std::istringstream text(read_file(path));
  Words lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

/// A run folder, read.
struct RunFiles {
  std::string path;

  std::string file(const std::string& name) const { return path + "/" + name; }
  bool has(const std::string& name) const { return std::filesystem::exists(file(name)); }
  nlohmann::json json(const std::string& name) const { return nlohmann::json::parse(read_file(file(name))); }
  CsvTable steps() const { return read_csv(file("steps.csv"), steps_columns()); }
  CsvTable layers() const { return read_csv(file("layers.csv"), layers_columns()); }
  CsvTable tensors() const { return read_csv(file("tensors.csv"), tensors_columns()); }
};

/// A column as text.
inline Words column(const CsvTable& table, std::string_view name) {
  Words cells;
  for (std::size_t row = 0; row < table.rows(); ++row) cells.emplace_back(table.text(row, table.column(name)));
  return cells;
}

/// A column of whole numbers.
inline std::vector<std::int64_t> integers(const CsvTable& table, std::string_view name) {
  std::vector<std::int64_t> cells;
  for (std::size_t row = 0; row < table.rows(); ++row) cells.push_back(table.integer(row, table.column(name)));
  return cells;
}

/// A cell that must hold a number.
inline double number(const CsvTable& table, std::size_t row, std::string_view name) {
  const std::optional<double> value = table.number(row, table.column(name));
  if (!value) throw std::runtime_error(std::string(name) + " is empty");
  return *value;
}

/// Rows of layers.csv with these values; each must occur.
inline std::vector<std::size_t> rows_of(const CsvTable& layers, std::int64_t step, std::int64_t layer) {
  std::vector<std::size_t> rows;
  for (std::size_t row = 0; row < layers.rows(); ++row)
    if (layers.integer(row, layers.column("step")) == step && layers.integer(row, layers.column("layer")) == layer)
      rows.push_back(row);
  EXPECT_FALSE(rows.empty()) << "no row for step " << step << ", layer " << layer;
  return rows;
}

/// Waits until the condition holds; false when it does not within a minute.
inline bool in_time(const std::function<bool()>& condition) {
  for (int trial = 0; trial < 12000; ++trial) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

/// Runs the program on small configurations, in a folder of its own.
class ProgramTest : public ::testing::Test {
 protected:
  /// Writes a file into the folder and gives its path.
  std::string write(const std::string& name, const std::string& text) {
    write_file_atomically(folder_ / name, text);
    return folder_ / name;
  }

  /// A configuration that trains in a moment: two pre-LN blocks, five steps.
  static constexpr const char* tiny_text =
      R"({"model": {"depth": 2, "width": 8, "heads": 2}, "data": {"vocabulary": 16, "context": 8},)"
      R"( "train": {"steps": 5, "batch": 4}})";
  std::string tiny() { return write("tiny.json", tiny_text); }

  /// --set for each KEY=VALUE.
  static Words set(const Words& overrides) {
    Words words;
    for (const std::string& override : overrides) words = words + Words{"--set", override};
    return words;
  }

  /// The command line of a run of `config` with these overrides into the folder's subfolder `out`.
  Words command(const std::string& config, const Words& overrides, const std::string& out = "run") {
    return Words{"run", config, "--out", folder_ / out} + set(overrides);
  }

  /// Such a run, which must end well.
  RunFiles run(const std::string& config, const Words& overrides, const std::string& out = "run") {
    const Outcome outcome = run_gradflow(command(config, overrides, out));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return {folder_ / out};
  }

  bool exists(const std::string& name) const { return std::filesystem::exists(folder_ / name); }

  TemporaryFolder folder_;
};

}  // namespace gradflow::testing
