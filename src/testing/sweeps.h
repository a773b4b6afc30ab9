#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "output/runs_table.h"
#include "testing/run_of_program.h"

namespace gradflow::testing {

/// Sweeps a small grid, study.json, in a folder of its own.
class Sweeps : public ProgramTest {
 protected:
  std::string grid(const std::string& rest) {
    return write("study.json", std::string("{\"base\": ") + tiny_text + (rest.empty() ? "" : ", ") + rest + "}");
  }

  Surroundings here() { return {.folder = folder_.path()}; }
  Outcome sweep(const Words& words) { return run_gradflow(Words{"sweep", "study.json"} + words, here()); }

  CsvTable runs() { return read_csv(folder_ / "results/study/runs.csv", runs_columns()); }
  Words statuses() { return column(runs(), "status"); }
  /// Of the run of that index, relative to the test's folder.
  std::string run_folder(std::size_t index) { return std::string(runs().text(index, runs().column("path"))); }

  /// Path in the folder → content of every CSV file that does not hold times.
  std::map<std::string, std::string> results(const std::string& folder = "results/study") {
    std::map<std::string, std::string> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_ / folder))
      if (entry.path().extension() == ".csv" && entry.path().filename() != "timing.csv" &&
          entry.path().filename() != "runs.csv")
        files[std::filesystem::relative(entry.path(), folder_ / folder).string()] = read_file(entry.path().string());
    return files;
  }

  /// Run folders in which the training has begun.
  std::size_t runs_begun() {
    std::size_t count = 0;
    if (exists("results/study"))
      for (const auto& entry : std::filesystem::directory_iterator(folder_ / "results/study"))
        if (std::filesystem::exists(entry.path() / "steps.csv")) ++count;
    return count;
  }

  /// The process that the lock of a run folder names.
  pid_t holder(const std::string& folder) {
    std::ifstream file(folder_ / (folder + "/lock"));
    std::string host;
    pid_t pid = 0;
    return file >> host >> pid ? pid : 0;
  }
};

}  // namespace gradflow::testing
