#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/layout.h"
#include "model/tensor.h"

namespace gradflow {

/// All parameters in one flat buffer, segment by segment, each tensor on a 64-byte boundary, with three more buffers of
/// the same shape for gradients and the optimizer's moments. A named parameter is a view and an autograd leaf whose
/// gradient is the matching view of the gradient buffer: backward adds into it, one pass over the buffer gives every
/// norm, and a checkpoint is the buffers themselves. The gaps between tensors hold zeros and stay zero.
class ParameterStore {
 public:
  struct Entry {
    std::string name;
    std::vector<std::int64_t> shape;
    std::int64_t offset = 0;  ///< in elements
    std::int64_t size = 0;
    std::size_t segment = 0;  ///< index into Layout::segments
    bool decays = false;
  };

  /// Allocates and fills with the initial values for `seed`. `dtype` is float32 or float64: also under bfloat16
  /// arithmetic the stored ("master") weights are float32.
  ParameterStore(const Layout& layout, std::uint64_t seed, at::ScalarType dtype, at::Device device);

  const std::vector<Entry>& entries() const { return entries_; }
  std::size_t segment_count() const { return segment_count_; }

  bool has(std::string_view name) const { return index_.contains(std::string(name)); }
  /// The leaf of that name; throws std::logic_error for a name the layout lacks.
  at::Tensor parameter(std::string_view name) const;
  at::Tensor gradient(std::string_view name) const;
  /// BatchNorm's running statistics [features]; not parameters.
  at::Tensor buffer(std::string_view name) const;
  const std::vector<std::pair<std::string, at::Tensor>>& buffers() const { return buffers_; }
  /// All running statistics, one behind the other; `buffers` are views of it. Empty without BatchNorm.
  at::Tensor& statistics() { return statistics_; }

  // The flat buffers, [elements].
  at::Tensor& values() { return values_; }
  at::Tensor& gradients() { return gradients_; }
  at::Tensor& first_moment() { return first_moment_; }
  at::Tensor& second_moment() { return second_moment_; }
  /// The weights and as many of the two moments as the optimizer has: what an update changes. The buffer of a moment
  /// that is not used takes no memory until it is written.
  std::vector<at::Tensor*> updated(int moments);

  void zero_gradients() { gradients_.zero_(); }
  /// Those of one segment's own parameters, of a store on the CPU.
  void zero_gradients(std::size_t segment);
  /// Where the entries of a segment begin; with segment_count(): how many entries there are.
  std::size_t first_entry(std::size_t segment) const { return first_entries_[segment]; }

  /// Elements from the start of each entry to that of the next, int64 [entries], where the buffers lie: the segments of
  /// a reduction over one of them.
  const at::Tensor& slice_lengths() const { return slice_lengths_; }

 private:
  std::vector<Entry> entries_;
  std::unordered_map<std::string, std::size_t> index_;
  std::size_t segment_count_ = 0;
  std::vector<std::size_t> first_entries_;  // [segments + 1]
  at::Tensor values_, gradients_, first_moment_, second_moment_, slice_lengths_;
  std::vector<at::Tensor> leaves_;
  at::Tensor statistics_;
  std::vector<std::pair<std::string, at::Tensor>> buffers_;
};

}  // namespace gradflow
