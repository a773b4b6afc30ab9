#include "core/lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include "core/files.h"
#include "core/machine.h"

namespace gradflow {
namespace {

/// "process PID on HOST" from the text of the lock file.
std::string holder_in(const std::string& text) {
  const std::size_t space = text.find(' ');
  if (space == std::string::npos) return "another process";
  const std::size_t end = text.find('\n', space);
  return "process " + text.substr(space + 1, end == std::string::npos ? end : end - space - 1) + " on " +
         text.substr(0, space);
}

/// Whether the open file is still the one of that name; closes it otherwise. Somebody who removes a folder between our
/// opening the file and locking it would leave us with a lock that nobody else sees.
bool stands_at(const std::string& path, int descriptor) {
  struct stat opened {};
  struct stat named {};
  if (::fstat(descriptor, &opened) == 0 && ::stat(path.c_str(), &named) == 0 && opened.st_ino == named.st_ino &&
      opened.st_dev == named.st_dev)
    return true;
  ::close(descriptor);
  return false;
}

int lock_retrying(int descriptor, int operation) {
  int result;
  do result = ::flock(descriptor, operation);
  while (result != 0 && errno == EINTR);
  return result == 0 ? 0 : errno;
}

/// Somebody who only asks whether it is held has the lock for a moment (`is_locked`), which is nobody's business.
int take_lock(int descriptor, bool waits) {
  if (waits) return lock_retrying(descriptor, LOCK_EX);
  int failure = EWOULDBLOCK;
  for (int trial = 0; trial < 5 && failure == EWOULDBLOCK; ++trial) {
    if (trial > 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    failure = lock_retrying(descriptor, LOCK_EX | LOCK_NB);
  }
  return failure;
}

}  // namespace

bool is_locked(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return errno != ENOENT && errno != ENOTDIR;
  const int failure = lock_retrying(descriptor, LOCK_SH | LOCK_NB);
  ::close(descriptor);
  return failure != 0;
}

FileLock::FileLock(const std::string& path) : FileLock(path, false) {}

FileLock FileLock::when_free(const std::string& path) { return FileLock(path, true); }

FileLock::FileLock(const std::string& path, bool waits) {
  int descriptor, failure;
  do {
    descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (descriptor < 0) throw file_error(path, "cannot be written", errno);
    failure = take_lock(descriptor, waits);
  } while (failure == 0 && !stands_at(path, descriptor));
  if (failure != 0) {
    ::close(descriptor);
    if (failure != EWOULDBLOCK) throw file_error(path, "cannot be locked", failure);
    throw LockHeld(path + ": held by " + holder_in(read_file(path)) +
                   "; wait until it ends or choose another folder with --out");
  }
  const std::string holder = host_name() + ' ' + std::to_string(::getpid()) + '\n';
  if (::ftruncate(descriptor, 0) != 0 || ::pwrite(descriptor, holder.data(), holder.size(), 0) < 0) {
    const int reason = errno;
    ::close(descriptor);
    throw file_error(path, "cannot be written", reason);
  }
  descriptor_ = descriptor;
}

FileLock::FileLock(FileLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

FileLock::~FileLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace gradflow
