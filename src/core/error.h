#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace gradflow {

/// The exit codes of the program; every command ends with one of them.
enum class Exit : int {
  done = 0,
  error = 1,         ///< configuration, file or environment
  usage = 2,         ///< wrong command line
  diverged = 3,      ///< the run stopped at a non-finite value; everything is written
  cell_failed = 4,   ///< some cell of a sweep failed
  interrupted = 75,  ///< signal; a checkpoint is written and --resume continues
};

/// What is wrong and what to do instead, one line for each fault, in the form "FILE:LINE: KEY: fault; remedy" with the
/// leading parts left out where they do not apply. Thrown anywhere, caught once in main, which prints each line behind
/// "gradflow: error: " and ends with `exit()`.
class Error : public std::runtime_error {
 public:
  explicit Error(std::string line, Exit exit = Exit::error) : Error(std::vector<std::string>{std::move(line)}, exit) {}
  explicit Error(std::vector<std::string> lines, Exit exit = Exit::error)
      : std::runtime_error(joined(lines)), lines_(std::move(lines)), exit_(exit) {}

  const std::vector<std::string>& lines() const { return lines_; }
  Exit exit() const { return exit_; }

 private:
  static std::string joined(const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) text += (text.empty() ? "" : "\n") + line;
    return text;
  }

  std::vector<std::string> lines_;
  Exit exit_;
};

}  // namespace gradflow
