#include "testing/faulty_files.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <map>
#include <string_view>

namespace gradflow::testing {
namespace {

struct State {
  bool active = false;
  std::string folder;
  std::uint64_t at = 0, calls = 0, injected = 0, written = 0;
  int error_number = 0;
  FaultyFiles::Mode mode = FaultyFiles::Mode::once;
  FaultyFiles::Unsynced unsynced;
  std::map<std::string, FaultyFiles::Unsynced> before;
};
State state;  // tests have one thread

template <class Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

bool below(std::string_view path) { return state.active && path.starts_with(state.folder); }

std::string path_of(int descriptor) {
  if (!state.active) return "";
  char target[PATH_MAX];
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  const ssize_t size = ::readlink(link.c_str(), target, sizeof target);
  return size > 0 ? std::string(target, static_cast<std::size_t>(size)) : "";
}

bool below(int descriptor) { return below(path_of(descriptor)); }

/// "checkpoint/step-3.safetensors", "" for the folder itself.
std::string name_in_folder(std::string_view path) {
  path.remove_prefix(std::min(path.size(), state.folder.size() + 1));
  return std::string(path);
}

std::string parent_of(const std::string& name) {
  const std::size_t slash = name.rfind('/');
  return slash == std::string::npos ? "" : name.substr(0, slash);
}

void was_synced(const std::string& name) {
  state.unsynced.contents.erase(name);
  std::erase_if(state.unsynced.names, [&](const std::string& each) { return parent_of(each) == name; });
}

void was_renamed(const std::string& from, const std::string& to) {
  state.before[to] = state.unsynced;
  state.unsynced.names.erase(from);
  state.unsynced.names.insert(to);
  if (state.unsynced.contents.erase(from) > 0) state.unsynced.contents.insert(to);
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
  state = {};
  state.active = true;
  state.folder = std::move(folder);
  state.at = at;
  state.error_number = error_number;
  state.mode = mode;
}
FaultyFiles::~FaultyFiles() { state.active = false; }
std::uint64_t FaultyFiles::calls() { return state.calls; }
std::uint64_t FaultyFiles::injected() { return state.injected; }
std::uint64_t FaultyFiles::written() { return state.written; }
FaultyFiles::Unsynced FaultyFiles::unsynced() { return state.unsynced; }
FaultyFiles::Unsynced FaultyFiles::unsynced_before(const std::string& path) { return state.before.at(path); }

namespace {

int open_for(const char* name, const char* path, int flags, mode_t mode) {
  static auto* const next = real<int(const char*, int, ...)>(name);
  const bool writes = (flags & O_ACCMODE) != O_RDONLY, creates = (flags & O_CREAT) != 0 && !exists(path);
  if (writes && below(path) && fails(creates)) return -1;
  const int descriptor = next(path, flags, mode);
  if (descriptor >= 0 && creates && below(path)) state.unsynced.names.insert(name_in_folder(path));
  return descriptor;
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
  if (!below(descriptor)) return next(descriptor, data, count);
  state.written += count;
  state.unsynced.contents.insert(name_in_folder(path_of(descriptor)));
  if (fails(grows(descriptor, place_of(descriptor), count))) {
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
  if (!below(descriptor)) return next(descriptor);
  if (fails(false)) return -1;
  was_synced(name_in_folder(path_of(descriptor)));
  return next(descriptor);
}

int ftruncate(int descriptor, off_t length) noexcept {
  static auto* const next = real<int(int, off_t)>("ftruncate");
  if (below(descriptor) && fails(false)) return -1;
  return next(descriptor, length);
}

int rename(const char* from, const char* to) noexcept {
  static auto* const next = real<int(const char*, const char*)>("rename");
  if (!below(to)) return next(from, to);
  if (fails(false)) return -1;
  const int result = next(from, to);
  if (result == 0) was_renamed(name_in_folder(from), name_in_folder(to));
  return result;
}

int mkdir(const char* path, mode_t mode) noexcept {
  static auto* const next = real<int(const char*, mode_t)>("mkdir");
  if (!below(path) || path == state.folder) return next(path, mode);  // a run must have a folder
  if (fails(!exists(path))) return -1;
  const int result = next(path, mode);
  if (result == 0) state.unsynced.names.insert(name_in_folder(path));
  return result;
}

int unlink(const char* path) noexcept {
  static auto* const next = real<int(const char*)>("unlink");
  if (below(path) && exists(path) && fails(false)) return -1;
  if (below(path))
    state.unsynced.contents.erase(name_in_folder(path)), state.unsynced.names.erase(name_in_folder(path));
  return next(path);
}

}  // extern "C"
// NOLINTEND
