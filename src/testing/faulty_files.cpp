#include "testing/faulty_files.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string_view>

namespace gradflow::testing {
namespace {

struct State {
  bool active = false;
  std::string folder;
  std::uint64_t at = 0, calls = 0, injected = 0;
  int error_number = 0;
  FaultyFiles::Mode mode = FaultyFiles::Mode::once;
};
State state;  // tests have one thread

template <class Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

bool below(std::string_view path) { return state.active && path.starts_with(state.folder); }

bool below(int descriptor) {
  if (!state.active) return false;
  char target[PATH_MAX];
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  const ssize_t size = ::readlink(link.c_str(), target, sizeof target);
  return size > 0 && below(std::string_view(target, static_cast<std::size_t>(size)));
}

/// Counts a call; whether it fails. `needs_room`: it would take new space.
bool fails(bool needs_room) {
  const std::uint64_t number = ++state.calls;
  bool failing = state.at > 0 && number >= state.at;
  if (state.mode == FaultyFiles::Mode::once) failing = number == state.at;
  if (state.mode == FaultyFiles::Mode::full) failing = failing && needs_room;
  if (!failing) return false;
  ++state.injected;
  errno = state.error_number;
  return true;
}

bool exists(const char* path) {
  struct stat status {};
  return ::stat(path, &status) == 0;
}

/// Whether writing so much more at `offset` goes beyond the blocks that the file has.
bool grows(int descriptor, off_t offset, std::size_t count) {
  constexpr off_t block = 4096;
  struct stat status {};
  ::fstat(descriptor, &status);
  return offset + static_cast<off_t>(count) > (status.st_size + block - 1) / block * block;
}

off_t place_of(int descriptor) {
  struct stat status {};
  ::fstat(descriptor, &status);
  return (::fcntl(descriptor, F_GETFL) & O_APPEND) != 0 ? status.st_size : ::lseek(descriptor, 0, SEEK_CUR);
}

}  // namespace

FaultyFiles::FaultyFiles(std::string folder, std::uint64_t at, int error_number, Mode mode) {
  state = {true, std::move(folder), at, 0, 0, error_number, mode};
}
FaultyFiles::~FaultyFiles() { state.active = false; }
std::uint64_t FaultyFiles::calls() { return state.calls; }
std::uint64_t FaultyFiles::injected() { return state.injected; }

namespace {

int open_for(const char* name, const char* path, int flags, mode_t mode) {
  static auto* const next = real<int(const char*, int, ...)>(name);
  const bool writes = (flags & O_ACCMODE) != O_RDONLY;
  if (writes && below(path) && fails((flags & O_CREAT) != 0 && !exists(path))) return -1;
  return next(path, flags, mode);
}

}  // namespace
}  // namespace gradflow::testing

using namespace gradflow::testing;

// NOLINTBEGIN: the names are those of the C library.
extern "C" {

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  return open_for("open", path, flags, mode);
}

ssize_t write(int descriptor, const void* data, size_t count) {
  static auto* const next = real<ssize_t(int, const void*, size_t)>("write");
  if (below(descriptor) && fails(grows(descriptor, place_of(descriptor), count))) {
    const int error_number = errno;
    (void)!next(descriptor, data, count / 2);
    errno = error_number;
    return -1;
  }
  return next(descriptor, data, count);
}

ssize_t pwrite(int descriptor, const void* data, size_t count, off_t offset) {
  static auto* const next = real<ssize_t(int, const void*, size_t, off_t)>("pwrite");
  if (below(descriptor) && fails(grows(descriptor, offset, count))) return -1;
  return next(descriptor, data, count, offset);
}

int fsync(int descriptor) {
  static auto* const next = real<int(int)>("fsync");
  if (below(descriptor) && fails(false)) return -1;
  return next(descriptor);
}

int ftruncate(int descriptor, off_t length) noexcept {
  static auto* const next = real<int(int, off_t)>("ftruncate");
  if (below(descriptor) && fails(false)) return -1;
  return next(descriptor, length);
}

int rename(const char* from, const char* to) noexcept {
  static auto* const next = real<int(const char*, const char*)>("rename");
  if (below(to) && fails(false)) return -1;
  return next(from, to);
}

int unlink(const char* path) noexcept {
  static auto* const next = real<int(const char*)>("unlink");
  if (below(path) && exists(path) && fails(false)) return -1;
  return next(path);
}

}  // extern "C"
// NOLINTEND
