#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/error.h"

namespace gradflow {

/// The Error for a failed system call: "PATH: WHAT (reason); remedy", reason and remedy from the errno value.
Error file_error(const std::string& path, std::string_view what, int error_number);

/// The whole file as bytes. Throws Error "PATH: cannot be read (reason); remedy".
std::string read_file(const std::string& path);

/// The first bytes of the file, or the last ones: at most `size`, fewer where the file is shorter. Throws Error like
/// read_file.
std::string read_beginning(const std::string& path, std::size_t size);
std::string read_ending(const std::string& path, std::size_t size);

/// Replaces or creates the file in one step: temporary file in the same folder (PATH.tmp), synced, renamed, folder
/// synced. Readers see the old content or the new one, never a part. Throws Error naming the file and the reason; then
/// the old content stands and no temporary file is left.
void write_file_atomically(const std::string& path, std::string_view content);
/// The same from pieces that stand one behind the other in the file, so that nobody has to join them.
void write_file_atomically(const std::string& path, std::span<const std::string_view> pieces);

/// The same for content that comes bit by bit: nothing stands under the name before `finish`, and without it nothing
/// stays.
class WholeFile {
 public:
  explicit WholeFile(std::string path);
  ~WholeFile();
  WholeFile(const WholeFile&) = delete;
  WholeFile& operator=(const WholeFile&) = delete;

  void append(std::string_view text);
  /// Call once, at the end.
  void finish();

 private:
  /// Throws the Error of a failed call unless its errno value is 0.
  void require(int failure) const;

  std::string path_, temporary_;
  int descriptor_ = -1;
  bool stands_ = false;
  std::string pending_;
};

/// Writes over the content of a file that exists, for a disk that has no room for a second copy. Whoever reads it
/// meanwhile may see a part. Throws Error naming the file and the reason.
void write_file_in_place(const std::string& path, std::string_view content);

/// Bytes in the file; absent where there is no regular file that can be looked at.
std::optional<std::uint64_t> file_size(const std::string& path);

/// Creates the folder and those above it, each synced into the folder that holds it: what is later written there
/// survives a crash of the machine. Throws Error naming the folder and the reason.
void create_folders(const std::string& path);

/// "a/b" for "a/b//"; "/" stays.
std::string without_slash_at_end(std::string path);

/// Removes the file if it is there. Throws Error naming the file and the reason.
void remove_file(const std::string& path);

/// A file that only grows. `append` collects, `flush` writes out what was collected; a failed write throws Error naming
/// the file and the reason, and takes back the part it has written: what lies in the file always ends where an `append`
/// ended. What was collected stays, so that a later flush can succeed.
class AppendFile {
 public:
  /// Creates the file (truncating one that exists).
  explicit AppendFile(std::string path);
  /// Goes on behind the first `length` bytes of a file that exists, and cuts off what stands behind them. Throws Error
  /// when it has fewer.
  AppendFile(std::string path, std::uint64_t length);
  /// Flushes; a failure is no longer reported. Call `flush` before.
  ~AppendFile();
  AppendFile(AppendFile&& other) noexcept;
  AppendFile& operator=(AppendFile&&) = delete;
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  /// Collects the text; beyond a mebibyte it also flushes.
  void append(std::string_view text);
  /// Hands everything collected to the operating system: other processes see it. Also throws when the file was removed
  /// or moved meanwhile, for its rows would be lost.
  void flush();
  /// Flushes, and waits until the disk holds it; throws as `flush` does, also with nothing to write.
  void sync();
  /// Of the file once everything collected is flushed.
  std::uint64_t length() const { return written_ + pending_.size(); }
  const std::string& path() const { return path_; }

 private:
  void check_place() const;

  std::string path_;
  int descriptor_ = -1;
  std::uint64_t written_ = 0;
  std::string pending_;
};

}  // namespace gradflow
