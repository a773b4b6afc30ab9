#include "core/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

namespace gradflow {
namespace {

constexpr std::size_t flush_beyond = std::size_t{1} << 20;  // also the size from which a piece is not copied

std::string_view remedy(int error_number) {
  switch (error_number) {
    case ENOENT: return "check the path";
    case EACCES:
    case EPERM: return "check its permissions or choose another place";
    case EROFS: return "the file system cannot be written; choose another place";
    case ENOSPC:
    case EDQUOT: return "free some space or choose another place";
    case EISDIR: return "name a file, not a folder";
    case ENOTDIR:
    case EEXIST: return "a part of the path is a file where a folder must be; choose another path";
    case EMFILE:
    case ENFILE: return "too many files are open; raise `ulimit -n`";
    case EFBIG: return "raise `ulimit -f`";
    case ENAMETOOLONG: return "choose a shorter name";
    case ENOLCK:
    case EOPNOTSUPP: return "choose a folder on a file system that offers locks";
    default: return "choose another place";
  }
}

int open_retrying(const std::string& path, int flags) {
  int descriptor;
  do descriptor = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
  while (descriptor < 0 && errno == EINTR);
  return descriptor;
}

/// Writes all of it; the errno value of the failure, or 0.
int write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(descriptor, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    if (count == 0) return ENOSPC;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return 0;
}

int sync_retrying(int descriptor) {
  int result;
  do result = ::fsync(descriptor);
  while (result != 0 && errno == EINTR);
  // Pipes, devices and some network file systems have nothing to sync.
  return result == 0 || errno == EINVAL || errno == ENOTSUP ? 0 : errno;
}

std::string folder_of(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  return folder.empty() ? "." : folder.string();
}

/// Without this a crash of the machine may lose the rename although the file's content is safe.
int sync_folder(const std::string& folder) {
  const int descriptor = open_retrying(folder, O_RDONLY | O_DIRECTORY);
  if (descriptor < 0) return errno;
  const int failure = sync_retrying(descriptor);
  ::close(descriptor);
  return failure;
}

/// At most `limit` bytes, from the beginning or those before the end.
std::string read_bytes(const std::string& path, std::size_t limit, bool from_end) {
  const int descriptor = open_retrying(path, O_RDONLY);
  if (descriptor < 0) throw file_error(path, "cannot be read", errno);
  struct stat status {};
  if (from_end && ::fstat(descriptor, &status) == 0 && status.st_size > static_cast<off_t>(limit))
    ::lseek(descriptor, -static_cast<off_t>(limit), SEEK_END);
  std::string content;
  std::array<char, 1 << 16> buffer;
  int failure = 0;
  while (content.size() < limit) {
    const ssize_t count = ::read(descriptor, buffer.data(), std::min(buffer.size(), limit - content.size()));
    if (count > 0) content.append(buffer.data(), static_cast<std::size_t>(count));
    if (count == 0) break;
    if (count < 0 && errno != EINTR) {
      failure = errno;
      break;
    }
  }
  ::close(descriptor);
  if (failure != 0) throw file_error(path, "cannot be read", failure);
  return content;
}

}  // namespace

Error file_error(const std::string& path, std::string_view what, int error_number) {
  return Error(path + ": " + std::string(what) + " (" + std::generic_category().message(error_number) + "); " +
               std::string(remedy(error_number)));
}

std::string read_file(const std::string& path) { return read_bytes(path, std::string::npos, false); }

std::string read_beginning(const std::string& path, std::size_t size) { return read_bytes(path, size, false); }

std::string read_ending(const std::string& path, std::size_t size) { return read_bytes(path, size, true); }

void write_file_atomically(const std::string& path, std::string_view content) {
  write_file_atomically(path, std::span(&content, 1));
}

void write_file_atomically(const std::string& path, std::span<const std::string_view> pieces) {
  WholeFile file(path);
  for (const std::string_view piece : pieces) file.append(piece);
  file.finish();
}

WholeFile::WholeFile(std::string path) : path_(std::move(path)), temporary_(path_ + ".tmp") {
  descriptor_ = open_retrying(temporary_, O_WRONLY | O_CREAT | O_TRUNC);
  require(descriptor_ < 0 ? errno : 0);
}

WholeFile::~WholeFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!stands_) ::unlink(temporary_.c_str());
}

void WholeFile::require(int failure) const {
  if (failure != 0) throw file_error(path_, "cannot be written", failure);
}

void WholeFile::append(std::string_view text) {
  if (pending_.size() + text.size() > flush_beyond) {
    require(write_all(descriptor_, pending_));
    pending_.clear();
  }
  if (text.size() <= flush_beyond)
    pending_ += text;
  else
    require(write_all(descriptor_, text));
}

void WholeFile::finish() {
  require(write_all(descriptor_, pending_));
  require(sync_retrying(descriptor_));
  const int closed = ::close(std::exchange(descriptor_, -1));
  require(closed != 0 && errno != EINTR ? errno : 0);
  require(::rename(temporary_.c_str(), path_.c_str()) != 0 ? errno : 0);
  stands_ = true;
  require(sync_folder(folder_of(path_)));
}

void write_file_in_place(const std::string& path, std::string_view content) {
  const int descriptor = open_retrying(path, O_WRONLY);
  if (descriptor < 0) throw file_error(path, "cannot be written", errno);
  int failure = write_all(descriptor, content);
  if (failure == 0 && ::ftruncate(descriptor, static_cast<off_t>(content.size())) != 0) failure = errno;
  if (failure == 0) failure = sync_retrying(descriptor);
  ::close(descriptor);
  if (failure != 0) throw file_error(path, "cannot be written", failure);
}

std::optional<std::uint64_t> file_size(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  return static_cast<std::uint64_t>(status.st_size);
}

void create_folders(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code failure, ignored;
  std::vector<fs::path> missing;  // innermost first
  for (fs::path part = without_slash_at_end(path); !part.empty() && !fs::exists(part, ignored);
       part = part.parent_path())
    missing.push_back(part);
  for (auto part = missing.rbegin(); part != missing.rend() && !failure; ++part) {
    if (!fs::create_directory(*part, failure)) continue;  // failed, or another process was faster
    const int not_synced = sync_folder(folder_of(part->string()));
    if (not_synced == 0 || not_synced == EACCES) continue;  // a folder that nobody may list cannot be synced
    failure = {not_synced, std::generic_category()};
    fs::remove(*part, ignored);  // who tries again must sync again
  }
  if (!failure && !fs::is_directory(path)) failure = std::make_error_code(std::errc::not_a_directory);
  if (failure) throw file_error(path, "cannot be created", failure.value());
}

std::string without_slash_at_end(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

void remove_file(const std::string& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) throw file_error(path, "cannot be removed", errno);
}

AppendFile::AppendFile(std::string path) : path_(std::move(path)) {
  descriptor_ = open_retrying(path_, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND);
  if (descriptor_ < 0) throw file_error(path_, "cannot be written", errno);
}

AppendFile::AppendFile(std::string path, std::uint64_t length) : path_(std::move(path)), written_(length) {
  const std::uint64_t size = file_size(path_).value_or(0);
  if (size < length)
    throw Error(path_ + ": has " + std::to_string(size) + " bytes where the checkpoint counts on " +
                std::to_string(length) +
                "; the file was changed by something else: start again (remove the folder, or run --overwrite)");
  descriptor_ = open_retrying(path_, O_WRONLY | O_APPEND);
  if (descriptor_ < 0) throw file_error(path_, "cannot be written", errno);
  if (::ftruncate(descriptor_, static_cast<off_t>(length)) != 0) {
    const int failure = errno;
    ::close(descriptor_);
    throw file_error(path_, "cannot be written", failure);
  }
}

AppendFile::AppendFile(AppendFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      written_(other.written_),
      pending_(std::exchange(other.pending_, {})) {}

AppendFile::~AppendFile() {
  if (descriptor_ < 0) return;
  try {
    flush();
  } catch (const Error&) {
    // A destructor cannot report; the owner that cares has flushed before.
  }
  ::close(descriptor_);
}

void AppendFile::append(std::string_view text) {
  pending_ += text;
  if (pending_.size() > flush_beyond) flush();
}

void AppendFile::flush() {
  if (pending_.empty()) return;
  check_place();
  const int failure = write_all(descriptor_, pending_);
  if (failure != 0) {
    // Where this fails too (a device), there is nothing left to save.
    [[maybe_unused]] const int cut = ::ftruncate(descriptor_, static_cast<off_t>(written_));
    throw file_error(path_, "cannot be written", failure);
  }
  written_ += pending_.size();
  pending_.clear();
}

void AppendFile::check_place() const {
  struct stat open_file {
  }, named{};
  if (::fstat(descriptor_, &open_file) != 0) return;
  if (::stat(path_.c_str(), &named) == 0 && named.st_dev == open_file.st_dev && named.st_ino == open_file.st_ino)
    return;
  throw Error(path_ +
              ": was removed or moved while the run was writing it; leave the folder of a run alone until it ends");
}

void AppendFile::sync() {
  check_place();
  flush();
  const int failure = sync_retrying(descriptor_);
  if (failure != 0) throw file_error(path_, "cannot be written", failure);
}

}  // namespace gradflow
