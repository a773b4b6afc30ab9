#pragma once

#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>

#include "core/error.h"

namespace gradflow {

/// What the program says to a person while it works: lines on the terminal (standard error) and, from `open_file` on,
/// in run.log, each flushed at once. At most one status line stands on the terminal; it never reaches run.log, and
/// every other line takes its place. One thread only.
class Log {
 public:
  /// `terminal` is std::cerr in the program and must live longer. `quiet`: only warnings and errors reach it; run.log
  /// gets everything.
  explicit Log(std::ostream& terminal, bool quiet = false);
  /// Ends a status line that still stands.
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  /// From now on also into this file, behind what it holds. Throws Error naming it.
  void open_file(const std::string& path);

  /// "gradflow: TEXT"
  void note(std::string_view text);
  /// "gradflow: warning: TEXT"
  void warning(std::string_view text);
  /// "gradflow: error: LINE" for each line of the error.
  void error(const Error& error);
  /// The text as it is, one line or more.
  void line(std::string_view text);
  /// Into run.log only: what goes to standard output, or is drawn on the terminal in another form.
  void record(std::string_view text);

  /// Draws the status line in place of the one that stands. `text` must fit the terminal.
  void show_status(std::string_view text);
  /// Removes the status line.
  void clear_status();

 private:
  enum class Level { line, warning, error };
  void say(Level level, std::string text);

  struct Sinks;
  std::unique_ptr<Sinks> sinks_;
  std::ostream& terminal_;
  std::size_t status_width_ = 0;
};

}  // namespace gradflow
