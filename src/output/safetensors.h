#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace gradflow {

// The safetensors layout: eight bytes with the length of a JSON header (little endian), the header, then the tensors
// one behind the other. Python's safetensors package reads it. Ours add a checksum to the metadata, over the whole file
// with the digits of the checksum itself as zeros.

enum class ElementType { float32, float64 };

/// A tensor of a file. Row-major.
struct TensorPlace {
  std::string name;
  ElementType type = ElementType::float32;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0, end = 0;  ///< bytes behind the header
};

/// A tensor to be written.
struct TensorContent {
  std::string name;
  ElementType type = ElementType::float32;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;
};

using Metadata = std::map<std::string, std::string>;

struct SafetensorsHeader {
  Metadata metadata;
  std::vector<TensorPlace> tensors;  ///< in the order in which they lie in the file, without gaps
};

/// Reads the JSON header of a file that has `data_bytes` bytes behind it. Throws Error saying what is wrong with it.
SafetensorsHeader parse_safetensors_header(std::string_view json, std::uint64_t data_bytes);

/// Writes the file in one step (write_file_atomically). Names must differ; `checksum` is added to the metadata. Throws
/// Error naming the file.
void write_safetensors(const std::string& path, const Metadata& metadata, std::span<const TensorContent> tensors);

/// A file that cannot be trusted.
struct Damaged : Error {
  using Error::Error;
};

/// A file that has been read through once: its header is in order and its checksum is right. Tensors are read when
/// asked for.
class SafetensorsFile {
 public:
  /// Throws Damaged, naming the file, when it is not whole, has no checksum or another one, or cannot be read at all.
  explicit SafetensorsFile(std::string path);
  ~SafetensorsFile();
  SafetensorsFile(const SafetensorsFile&) = delete;
  SafetensorsFile& operator=(const SafetensorsFile&) = delete;

  const std::string& path() const { return path_; }
  const Metadata& metadata() const { return header_.metadata; }
  const std::vector<TensorPlace>& tensors() const { return header_.tensors; }
  /// Null when there is no tensor of this name.
  const TensorPlace* find(std::string_view name) const;
  /// Copies the tensor's bytes; `into` has exactly as many. Throws Error naming the file when it cannot be read.
  void read(const TensorPlace& tensor, std::span<std::byte> into) const;

 private:
  void read_through();
  void read_at(std::uint64_t offset, std::span<std::byte> into) const;

  std::string path_;
  int descriptor_ = -1;
  std::uint64_t data_start_ = 0;
  SafetensorsHeader header_;
  std::map<std::string, std::size_t, std::less<>> index_;
};

}  // namespace gradflow
