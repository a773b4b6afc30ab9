#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gradflow {

/// Reads a text file line by line in constant memory. A last line without its end is not given: its writer was killed,
/// or is just writing.
class LineReader {
 public:
  /// Throws Error naming the file when it cannot be read.
  explicit LineReader(std::string path);
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  /// The next line without its end, be it "\n" or "\r\n"; it lives until the next call. Throws Error like read_file.
  std::optional<std::string_view> next();

 private:
  bool fill();

  std::string path_;
  int descriptor_ = -1;
  std::string buffer_;
  std::size_t start_ = 0;  ///< of what has not been given yet
};

}  // namespace gradflow
