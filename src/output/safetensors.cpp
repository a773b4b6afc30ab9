#include "output/safetensors.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "core/checksum.h"
#include "core/error.h"
#include "core/files.h"

namespace gradflow {
namespace {

using nlohmann::json;

static_assert(std::endian::native == std::endian::little, "the layout is little-endian");

constexpr std::uint64_t longest_header = 100'000'000;  // what the Python package takes at most
constexpr std::size_t digits = 16;
constexpr std::string_view zeros = "0000000000000000";
constexpr std::string_view before_checksum = R"("checksum":")";

struct TypeRow {
  std::string_view name;
  std::uint64_t bytes;
};
constexpr std::array<TypeRow, 2> types{{{"F32", 4}, {"F64", 8}}};
const TypeRow& row_of(ElementType type) { return types[static_cast<std::size_t>(type)]; }

std::string hexadecimal(std::uint64_t value) {
  std::string text(digits, '0');
  for (std::size_t i = digits; i-- > 0; value >>= 4) text[i] = "0123456789abcdef"[value & 15];
  return text;
}

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

std::array<std::byte, 8> length_bytes(std::uint64_t length) { return std::bit_cast<std::array<std::byte, 8>>(length); }

/// Where the digits of the checksum stand in a header; npos when it has none.
std::size_t checksum_place(std::string_view header) {
  // Inside a text of the JSON every quote has a backslash before it, so this is the key itself.
  const std::size_t key = header.find(before_checksum);
  if (key == std::string_view::npos || header.size() - key < before_checksum.size() + digits)
    return std::string_view::npos;
  return key + before_checksum.size();
}

[[noreturn]] void malformed(const std::string& what) { throw Error("its header " + what); }

std::uint64_t whole_number(const json& value) {
  if (!value.is_number_unsigned()) malformed("has something else where a whole number must stand");
  return value.get<std::uint64_t>();
}

TensorPlace tensor_of(const std::string& name, const json& value) {
  for (const char* key : {"dtype", "shape", "data_offsets"})
    if (!value.is_object() || !value.contains(key)) malformed("has no " + std::string(key) + " for " + name);
  const auto type =
      std::find_if(types.begin(), types.end(), [&](const TypeRow& row) { return value["dtype"] == row.name; });
  if (type == types.end()) malformed("has a type that is not known here for " + name);
  const json &shape = value["shape"], &offsets = value["data_offsets"];
  if (!shape.is_array() || !offsets.is_array() || offsets.size() != 2) malformed("has no place for " + name);

  TensorPlace tensor{
      name, static_cast<ElementType>(type - types.begin()), {}, whole_number(offsets[0]), whole_number(offsets[1])};
  if (tensor.begin > tensor.end) malformed("has a place that ends before it begins for " + name);
  std::uint64_t bytes = type->bytes;
  for (const json& size : shape) {
    const std::uint64_t count = whole_number(size);
    if (count > static_cast<std::uint64_t>(INT64_MAX) || __builtin_mul_overflow(bytes, count, &bytes))
      malformed("has a shape beyond all measure for " + name);
    tensor.shape.push_back(static_cast<std::int64_t>(count));
  }
  if (bytes != tensor.end - tensor.begin) malformed("has a place of another size than the shape of " + name);
  return tensor;
}

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view text, std::uint64_t data_bytes) {
  const json root = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!root.is_object()) malformed("is no JSON object");
  SafetensorsHeader header;
  for (const auto& [name, value] : root.items()) {
    if (name != "__metadata__") {
      header.tensors.push_back(tensor_of(name, value));
      continue;
    }
    if (!value.is_object()) malformed("has metadata that are no object");
    for (const auto& [key, word] : value.items()) {
      if (!word.is_string()) malformed("has metadata that are no text");
      header.metadata[key] = word.get<std::string>();
    }
  }
  std::stable_sort(header.tensors.begin(), header.tensors.end(),
                   [](const TensorPlace& a, const TensorPlace& b) { return a.begin < b.begin; });
  std::uint64_t end = 0;
  for (const TensorPlace& tensor : header.tensors) {
    if (tensor.begin != end) malformed("leaves a gap or an overlap before " + tensor.name);
    end = tensor.end;
  }
  if (end != data_bytes)
    malformed("describes " + std::to_string(end) + " bytes of tensors and there are " + std::to_string(data_bytes));
  return header;
}

void write_safetensors(const std::string& path, const Metadata& metadata, std::span<const TensorContent> tensors) {
  // Texts that are not UTF-8 (a name of a file) must not cost the checkpoint.
  const auto text_of_json = [](const json& value) {
    return value.dump(-1, ' ', false, json::error_handler_t::replace);
  };
  json notes = {{"checksum", zeros}};
  for (const auto& [key, value] : metadata) notes[key] = value;
  // Written tensor by tensor: as one JSON value the header of a thousand blocks would take tens of megabytes.
  std::string header = "{\"__metadata__\":" + text_of_json(notes);
  std::set<std::string_view> names;
  std::uint64_t place = 0;
  for (const TensorContent& tensor : tensors) {
    if (!names.insert(tensor.name).second) throw std::logic_error("two tensors of one name in " + path);
    const std::uint64_t end = place + tensor.bytes.size();
    header +=
        ',' + text_of_json(tensor.name) + ':' +
        text_of_json({{"dtype", row_of(tensor.type).name}, {"shape", tensor.shape}, {"data_offsets", {place, end}}});
    place = end;
  }
  header += '}';
  header.resize((header.size() + 7) / 8 * 8, ' ');  // the tensors start at a multiple of eight
  const auto length = length_bytes(header.size());

  Checksum sum;
  sum.add(length);
  sum.add(bytes_of(header));
  for (const TensorContent& tensor : tensors) sum.add(tensor.bytes);
  header.replace(checksum_place(header), digits, hexadecimal(sum.value()));

  const auto text_of = [](std::span<const std::byte> bytes) {
    return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  std::vector<std::string_view> pieces = {text_of(length), header};
  for (const TensorContent& tensor : tensors) pieces.push_back(text_of(tensor.bytes));
  write_file_atomically(path, pieces);
}

SafetensorsFile::SafetensorsFile(std::string path) : path_(std::move(path)) {
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0) throw Damaged(file_error(path_, "cannot be read", errno).lines());
  try {
    read_through();
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

SafetensorsFile::~SafetensorsFile() { ::close(descriptor_); }

void SafetensorsFile::read_through() {
  const auto damaged = [&](const std::string& why) {
    return Damaged(path_ + ": is damaged (" + why + "); take another checkpoint or run again");
  };
  const std::uint64_t size = file_size(path_).value_or(0);
  std::array<std::byte, 8> length{};
  if (size < length.size()) throw damaged("it has " + std::to_string(size) + " bytes");
  read_at(0, length);
  const auto header_size = std::bit_cast<std::uint64_t>(length);
  if (header_size > longest_header || header_size > size - length.size())
    throw damaged("its header would be " + std::to_string(header_size) + " bytes long");
  std::string text(header_size, '\0');
  read_at(length.size(), std::as_writable_bytes(std::span(text)));
  data_start_ = length.size() + header_size;

  const std::size_t place = checksum_place(text);
  if (place == std::string::npos) throw damaged("it has no checksum");
  const std::string expected = text.substr(place, digits);
  std::string unsigned_text = text;
  unsigned_text.replace(place, digits, zeros);
  Checksum sum;
  sum.add(length);
  sum.add(bytes_of(unsigned_text));
  std::vector<std::byte> chunk(std::size_t{1} << 20);
  for (std::uint64_t at = data_start_; at < size;) {
    const auto part =
        std::span(chunk).first(static_cast<std::size_t>(std::min<std::uint64_t>(chunk.size(), size - at)));
    read_at(at, part);
    sum.add(part);
    at += part.size();
  }
  if (hexadecimal(sum.value()) != expected) throw damaged("its checksum does not agree");
  try {
    header_ = parse_safetensors_header(text, size - data_start_);
  } catch (const Error& error) {
    throw damaged(error.what());
  }
  for (std::size_t i = 0; i < header_.tensors.size(); ++i) index_.emplace(header_.tensors[i].name, i);
}

const TensorPlace* SafetensorsFile::find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &header_.tensors[found->second];
}

void SafetensorsFile::read(const TensorPlace& tensor, std::span<std::byte> into) const {
  if (into.size() != tensor.end - tensor.begin) throw std::logic_error("no room of the size of " + tensor.name);
  read_at(data_start_ + tensor.begin, into);
}

void SafetensorsFile::read_at(std::uint64_t offset, std::span<std::byte> into) const {
  while (!into.empty()) {
    const ssize_t count = ::pread(descriptor_, into.data(), into.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) throw Damaged(file_error(path_, "cannot be read", count < 0 ? errno : EIO).lines());
    into = into.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
}

}  // namespace gradflow
