#pragma once

#include <cstdint>
#include <set>
#include <string>

namespace gradflow::testing {

/// While an object lives, calls of this process that change files below a folder (open for writing, write, pwrite,
/// fsync, ftruncate, rename, unlink, mkdir) are counted, and some fail. Works by standing before the C library's
/// functions of the same names, so the program's code is the one that ships.
class FaultyFiles {
 public:
  enum class Mode {
    once,     ///< only call number `at` fails
    onwards,  ///< call number `at` and every later one
    full,     ///< from call `at` on nothing new can be created and no file can grow beyond the blocks it has
  };
  /// `at` counts from 1; 0: nothing fails. A write that fails has written half before.
  FaultyFiles(std::string folder, std::uint64_t at, int error_number, Mode mode = Mode::once);
  ~FaultyFiles();
  FaultyFiles(const FaultyFiles&) = delete;
  FaultyFiles& operator=(const FaultyFiles&) = delete;

  static std::uint64_t calls();     ///< counted so far
  static std::uint64_t injected();  ///< failed so far
  static std::uint64_t written();   ///< bytes

  /// What a crash of the machine may lose: files whose content, and files and folders whose names, were changed and not
  /// synced since, by their paths in the folder.
  struct Unsynced {
    std::set<std::string> contents, names;
  };
  static Unsynced unsynced();
  /// The same as it was when something was last renamed into that place.
  static Unsynced unsynced_before(const std::string& path);
};

}  // namespace gradflow::testing
