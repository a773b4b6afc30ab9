#include "output/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/ostream_sink.h>

#include <cerrno>
#include <ostream>
#include <utility>

#include "core/files.h"
#include "output/text_table.h"

namespace gradflow {
namespace {

constexpr const char* pattern = "%v";

}  // namespace

struct Log::Sinks {
  spdlog::logger terminal;
  std::unique_ptr<spdlog::logger> file;
};

Log::Log(std::ostream& terminal, bool quiet)
    : sinks_(new Sinks{
          spdlog::logger("terminal", std::make_shared<spdlog::sinks::ostream_sink_st>(terminal, /*force_flush=*/true)),
          nullptr}),
      terminal_(terminal) {
  sinks_->terminal.set_pattern(pattern);
  sinks_->terminal.set_level(quiet ? spdlog::level::warn : spdlog::level::trace);
}

Log::~Log() {
  if (status_width_ > 0) terminal_ << std::endl;
}

void Log::open_file(const std::string& path) {
  try {
    auto sink = std::make_shared<spdlog::sinks::basic_file_sink_st>(path);
    sinks_->file = std::make_unique<spdlog::logger>("run.log", std::move(sink));
  } catch (const spdlog::spdlog_ex&) {
    throw file_error(path, "cannot be written", errno);
  }
  sinks_->file->set_pattern(pattern);
  sinks_->file->set_level(spdlog::level::trace);
  sinks_->file->flush_on(spdlog::level::trace);
  // A log that can no longer be written is said once; the run's results do not depend on it.
  sinks_->file->set_error_handler([this, path, said = false](const std::string& reason) mutable {
    if (std::exchange(said, true)) return;
    clear_status();
    sinks_->terminal.warn("gradflow: warning: {}: cannot be written ({}); the run goes on without it", path, reason);
  });
}

void Log::say(Level level, std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  constexpr spdlog::level::level_enum levels[] = {spdlog::level::info, spdlog::level::warn, spdlog::level::err};
  const auto spd_level = levels[static_cast<std::size_t>(level)];
  if (sinks_->terminal.should_log(spd_level)) clear_status();
  sinks_->terminal.log(spd_level, spdlog::string_view_t(text));
  if (sinks_->file) sinks_->file->log(spd_level, spdlog::string_view_t(text));
}

void Log::note(std::string_view text) { say(Level::line, "gradflow: " + std::string(text)); }
void Log::warning(std::string_view text) { say(Level::warning, "gradflow: warning: " + std::string(text)); }
void Log::error(const Error& error) {
  for (const std::string& fault : error.lines()) say(Level::error, "gradflow: error: " + fault);
}
void Log::line(std::string_view text) { say(Level::line, std::string(text)); }

void Log::record(std::string_view text) {
  if (!sinks_->file) return;
  while (text.ends_with('\n')) text.remove_suffix(1);
  sinks_->file->log(spdlog::level::info, spdlog::string_view_t(text.data(), text.size()));
}

void Log::show_status(std::string_view text) {
  // Blanks over what the line before leaves at the end: no escape codes, so any terminal will do.
  const std::size_t width = display_width(text);
  const std::string blanks(status_width_ > width ? status_width_ - width : 0, ' ');
  terminal_ << '\r' << text << blanks << std::flush;
  status_width_ = width;
}

void Log::clear_status() {
  if (status_width_ == 0) return;
  terminal_ << '\r' << std::string(status_width_, ' ') << '\r' << std::flush;
  status_width_ = 0;
}

}  // namespace gradflow
