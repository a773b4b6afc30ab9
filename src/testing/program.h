#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace gradflow::testing {

/// How a program ended and what it said.
struct Outcome {
  int code = -1;  ///< exit code; 128 + signal when a signal ended it
  std::string out, err;
  std::int64_t peak_memory = 0;  ///< bytes of main memory that it held at once, at most

  /// Lines of `err`, without their ends.
  std::vector<std::string> error_lines() const;
};

/// In what surroundings a program runs.
struct Surroundings {
  std::string folder;  ///< where it starts; empty: where the test is
  std::string shell;   ///< what a shell does before it becomes the program: "ulimit -s 1024", "export LC_ALL=C"
};

/// A program while it runs; killed at the end of its life if nobody waited for it.
class RunningProgram {
 public:
  RunningProgram(const std::string& program, const std::vector<std::string>& arguments,
                 const Surroundings& surroundings = {});
  ~RunningProgram();
  RunningProgram(const RunningProgram&) = delete;
  RunningProgram& operator=(const RunningProgram&) = delete;

  pid_t pid() const { return pid_; }
  /// Whether it has not ended yet.
  bool runs() const;
  void kill(int signal) const;
  /// Until it ends. Call once.
  Outcome wait();

 private:
  pid_t pid_ = -1;
  int out_ = -1, err_ = -1;
};

}  // namespace gradflow::testing
