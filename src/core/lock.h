#pragma once

#include <string>

#include "core/error.h"

namespace gradflow {

/// The Error of a lock that another process has.
class LockHeld : public Error {
 public:
  using Error::Error;
};

/// Whether some process holds the lock of that file: as far as this machine can see, which on a network is up to the
/// file system. No without such a file; yes where it may not be asked.
bool is_locked(const std::string& path);

/// An exclusive kernel lock on a file (flock), held until this object or its process ends, however it ends: there are
/// no stale locks. The file holds "HOST PID" of the latest holder and is never removed, for another process may just be
/// opening it.
class FileLock {
 public:
  /// Creates the file if need be and takes the lock. Throws LockHeld naming the holder when another process (or another
  /// FileLock of this one) has it, and Error with the reason when the file cannot be opened or the file system has no
  /// locks.
  explicit FileLock(const std::string& path);
  /// The same, but waits until the lock is free: for work that takes a moment.
  static FileLock when_free(const std::string& path);
  ~FileLock();
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&&) = delete;
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  FileLock(const std::string& path, bool waits);

  int descriptor_ = -1;
};

}  // namespace gradflow
