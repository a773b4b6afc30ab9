#include "model/parameter_store.h"

#include <cstddef>
#include <cstring>
#include <stdexcept>

#include "core/interrupt.h"
#include "model/initialization.h"
#include "model/mapped_tensor.h"

namespace gradflow {

ParameterStore::ParameterStore(const Layout& layout, std::uint64_t seed, at::ScalarType dtype, at::Device device)
    : segment_count_(layout.segments.size()) {
  const auto alignment = static_cast<std::int64_t>(64 / c10::elementSize(dtype));
  std::int64_t total = 0;
  for (std::size_t s = 0; s < layout.segments.size(); ++s) {
    first_entries_.push_back(entries_.size());
    for (const ParameterSpec& spec : layout.segments[s].parameters) {
      index_.emplace(spec.name, entries_.size());
      entries_.push_back({spec.name, spec.shape, total, spec.size(), s, spec.decays()});
      total += (spec.size() + alignment - 1) / alignment * alignment;
    }
  }
  first_entries_.push_back(entries_.size());

  const auto on_device = at::TensorOptions().dtype(dtype).device(device);
  at::Tensor start = mapped_zeros({total}, at::TensorOptions().dtype(dtype));
  std::size_t e = 0;
  for (const SegmentSpec& segment : layout.segments)
    for (const ParameterSpec& spec : segment.parameters) {
      give_up_if_interrupted();
      const Entry& entry = entries_[e++];
      initialize(spec, seed, start.narrow(0, entry.offset, entry.size));
    }
  values_ = start.to(on_device);
  gradients_ = mapped_zeros({total}, on_device);
  // Of zeros that nobody writes: SGD has no second moment, and without momentum no first one, each of them for a
  // thousand blocks a fifth of a run's memory.
  first_moment_ = mapped_zeros({total}, on_device);
  second_moment_ = mapped_zeros({total}, on_device);
  std::vector<std::int64_t> lengths(entries_.size());
  for (std::size_t s = 0; s < lengths.size(); ++s)
    lengths[s] = (s + 1 < entries_.size() ? entries_[s + 1].offset : total) - entries_[s].offset;
  slice_lengths_ = at::tensor(lengths, at::kLong).to(device);

  leaves_.reserve(entries_.size());
  for (const Entry& entry : entries_) {
    at::Tensor leaf = values_.narrow(0, entry.offset, entry.size).view(entry.shape).detach();
    leaf.requires_grad_(true);
    leaf.mutable_grad() = gradients_.narrow(0, entry.offset, entry.size).view(entry.shape);
    leaves_.push_back(std::move(leaf));
  }
  std::int64_t statistics = 0;
  for (const SegmentSpec& segment : layout.segments)
    for (const BufferSpec& buffer : segment.buffers) statistics += buffer.size;
  statistics_ = at::empty({statistics}, on_device);
  std::int64_t place = 0;
  for (const SegmentSpec& segment : layout.segments)
    for (const BufferSpec& buffer : segment.buffers) {
      buffers_.emplace_back(buffer.name, statistics_.narrow(0, place, buffer.size).fill_(buffer.start));
      place += buffer.size;
    }
}

at::Tensor ParameterStore::parameter(std::string_view name) const {
  const auto found = index_.find(std::string(name));
  if (found == index_.end()) throw std::logic_error("no parameter named " + std::string(name));
  return leaves_[found->second];
}

std::vector<at::Tensor*> ParameterStore::updated(int moments) {
  std::vector<at::Tensor*> buffers{&values_, &first_moment_, &second_moment_};
  buffers.resize(1 + static_cast<std::size_t>(moments));
  return buffers;
}

void ParameterStore::zero_gradients(std::size_t segment) {
  const std::size_t first = first_entry(segment), last = first_entry(segment + 1);
  if (first == last) return;
  const std::int64_t begin = entries_[first].offset, end = entries_[last - 1].offset + entries_[last - 1].size;
  const std::size_t element = gradients_.element_size();
  // An operator for every segment of a deep stack would show in the time of a step.
  std::memset(static_cast<std::byte*>(gradients_.data_ptr()) + static_cast<std::size_t>(begin) * element, 0,
              static_cast<std::size_t>(end - begin) * element);
}

at::Tensor ParameterStore::gradient(std::string_view name) const { return parameter(name).grad(); }

at::Tensor ParameterStore::buffer(std::string_view name) const {
  for (const auto& [buffer_name, tensor] : buffers_)
    if (buffer_name == name) return tensor;
  throw std::logic_error("no buffer named " + std::string(name));
}

}  // namespace gradflow
