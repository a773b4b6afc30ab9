#include "core/lines.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "core/files.h"

namespace gradflow {

LineReader::LineReader(std::string path) : path_(std::move(path)) {
  do descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  while (descriptor_ < 0 && errno == EINTR);
  if (descriptor_ < 0) throw file_error(path_, "cannot be read", errno);
}

LineReader::~LineReader() { ::close(descriptor_); }

bool LineReader::fill() {
  constexpr std::size_t chunk = std::size_t{1} << 18;
  buffer_.erase(0, start_);
  start_ = 0;
  const std::size_t kept = buffer_.size();
  buffer_.resize(kept + chunk);
  ssize_t count;
  do count = ::read(descriptor_, buffer_.data() + kept, chunk);
  while (count < 0 && errno == EINTR);
  if (count < 0) throw file_error(path_, "cannot be read", errno);
  buffer_.resize(kept + static_cast<std::size_t>(count));
  return count > 0;
}

std::optional<std::string_view> LineReader::next() {
  std::size_t end = buffer_.find('\n', start_);
  while (end == std::string::npos) {
    const std::size_t searched = buffer_.size() - start_;
    if (!fill()) return std::nullopt;
    end = buffer_.find('\n', searched);
  }
  std::string_view line = std::string_view(buffer_).substr(start_, end - start_);
  if (line.ends_with('\r')) line.remove_suffix(1);
  start_ = end + 1;
  return line;
}

}  // namespace gradflow
