#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "command/experiment.h"
#include "core/files.h"
#include "core/interrupt.h"
#include "output/safetensors.h"
#include "testing/temporary_folder.h"

namespace gradflow::testing {

using Words = std::vector<std::string>;

/// Sends this process a signal when a step is done.
class Interrupter final : public Observer {
 public:
  Interrupter(std::int64_t step, int signal) : step_(step), signal_(signal) {}
  void step_done(const StepResult& result) override {
    if (result.step == step_) ::raise(signal_);
  }

 private:
  std::int64_t step_;
  int signal_;
};

/// Sends a signal when a step is about to end, and waits until nobody has patience any longer.
class SlowEnd final : public Observer, private Watcher {
 public:
  explicit SlowEnd(std::int64_t step) : step_(step) {}
  Watcher* watcher_for(std::int64_t step) override { return step == step_ ? this : nullptr; }
  void step_done(const StepResult&) override {}

 private:
  void forward_done(std::size_t, const Stream&, const Stream&, const Inside&, const Batch&) override {}
  void gradient_arrived(std::size_t segment, const Stream&) override {
    if (segment != 0) return;
    ::raise(SIGTERM);
    ::sleep(4);
  }

  std::int64_t step_;
};

/// Two blocks, 24 steps, with everything on that has a state.
inline constexpr const char* small = R"({"model": {"depth": 2, "width": 8, "heads": 2, "dropout": 0.1},
  "data": {"vocabulary": 16, "context": 8}, "train": {"steps": 24, "batch": 4, "evaluate_every": 7},
  "record": {"layers_every": 5, "tensors": true}})";

/// Runs experiments in this process, in a folder of its own, and compares what they leave.
class ExperimentTest : public ::testing::Test {
 protected:
  ExperimentTest() {
    write_file_atomically(folder_ / "small.json", small);
    catch_interrupts();
    forget_interrupt();
  }
  ~ExperimentTest() override {
    forget_interrupt();
    for (const int signal : interrupting_signals) ::signal(signal, SIG_DFL);
  }

  std::string path(const std::string& name) const { return folder_ / name; }

  ExperimentResult run(const std::string& name, const Words& overrides, ExperimentOptions options = {}) {
    forget_interrupt();
    catch_interrupts();  // a first signal has given SIGINT back its own way
    options.out = path(name);
    std::ostringstream terminal;
    const Prepared prepared = prepare(folder_ / "small.json", overrides);
    ExperimentResult result;
    try {
      result = run_experiment(prepared, options, terminal);
    } catch (...) {
      said_ = terminal.str();
      throw;
    }
    said_ = terminal.str();
    return result;
  }

  /// The same, ended by a signal after a step.
  ExperimentResult run_until(std::int64_t step, const std::string& name, const Words& overrides, bool resume = false,
                             int signal = SIGTERM) {
    Interrupter interrupter(step, signal);
    return run(name, overrides, {.resume = resume, .observer = &interrupter});
  }

  std::string error_of(const std::string& name, const Words& overrides, ExperimentOptions options = {}) {
    try {
      run(name, overrides, options);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }

  nlohmann::json json(const std::string& name, const std::string& file) const {
    return nlohmann::json::parse(read_file(path(name) + '/' + file));
  }

  Words checkpoints(const std::string& name) const {
    Words files;
    if (std::filesystem::exists(path(name) + "/checkpoint"))
      for (const auto& entry : std::filesystem::directory_iterator(path(name) + "/checkpoint"))
        files.push_back(entry.path().filename().string());
    std::sort(files.begin(), files.end());
    return files;
  }

  /// All CSV files but timing.csv, by name.
  std::map<std::string, std::string> tables(const std::string& name) const {
    std::map<std::string, std::string> result;
    for (const auto& entry : std::filesystem::directory_iterator(path(name)))
      if (const std::string file = entry.path().filename().string(); file.ends_with(".csv") && file != "timing.csv")
        result[file] = read_file(entry.path().string());
    return result;
  }

  /// Weights, moments, running statistics and what the observers remember but for their clocks, as bytes.
  std::map<std::string, std::string> tensors(const std::string& name, std::int64_t step) const {
    const SafetensorsFile file(path(name) + "/checkpoint/step-" + std::to_string(step) + ".safetensors");
    std::map<std::string, std::string> result;
    for (const TensorPlace& place : file.tensors()) {
      if (place.name == "state.recorder") continue;
      std::string& bytes = result[place.name];
      bytes.resize(place.end - place.begin);
      file.read(place, std::as_writable_bytes(std::span(bytes)));
    }
    return result;
  }

  nlohmann::json summary(const std::string& name) const {
    nlohmann::json json = this->json(name, "summary.json");
    json.erase("recording");
    return json;
  }

  void expect_same(const std::string& name, const std::string& whole, std::int64_t steps) const {
    EXPECT_EQ(tables(name), tables(whole)) << name;
    EXPECT_TRUE(tensors(name, steps) == tensors(whole, steps)) << name;
    EXPECT_EQ(summary(name), summary(whole)) << name;
  }

  TemporaryFolder folder_;
  std::string said_;  // on the terminal
};

}  // namespace gradflow::testing
