#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gradflow {

/// The arguments that this process was started with, its own name first, as the kernel keeps them; empty where it does
/// not say.
std::vector<std::string> command_line();

/// How a program ended that was run to its end.
struct MeasuredEnd {
  int code = 0;        ///< exit code; 128 + signal when a signal ended it
  double seconds = 0;  ///< from its start to its end
  std::int64_t peak_memory =
      0;  ///< bytes of main memory that it held at once, at most; the kernel counts what this process held as well
};

/// Starts the program with these arguments, its own name first, and waits for it. It shares standard output, standard
/// error and the cores of this process, and is killed when a signal arrives that `catch_interrupts` catches. Throws
/// Error when it cannot be started.
MeasuredEnd run_process(const std::string& program, const std::vector<std::string>& arguments);

}  // namespace gradflow
