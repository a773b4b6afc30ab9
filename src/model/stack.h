#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "config/config.h"
#include "model/layout.h"
#include "model/parameter_store.h"
#include "model/segment.h"

namespace gradflow {

/// Looks at the boundaries between segments while a batch passes. It must not change what it is shown, and what it is
/// shown is there during the call only: a backend may write the next segment's numbers into the same memory.
class Watcher {
 public:
  virtual ~Watcher() = default;
  /// After the forward of segment `segment`: what entered, what left, what stood inside.
  virtual void forward_done(std::size_t segment, const Stream& input, const Stream& output, const Inside& inside,
                            const Batch& batch) = 0;
  /// Before the backward of segment `segment`: the gradient of the loss with respect to its output.
  virtual void gradient_arrived(std::size_t segment, const Stream& gradient) = 0;
  /// What it wants to see inside of segments, beyond what is always shown.
  virtual Taps taps() const { return {}; }
  /// After the backward of segment `segment`, where `taps()` asks for it and the segment has a skip: dL/d(input)
  /// through the skip alone.
  virtual void skip_gradient_found(std::size_t segment, const at::Tensor& gradient) {
    (void)segment;
    (void)gradient;
  }
};

using Watchers = std::span<Watcher* const>;

/// Sees to the gradients of each segment's own parameters around its backward, while they are in cache. Other segments
/// may have added to them before (tied embeddings), none does after.
class GradientKeeper {
 public:
  virtual ~GradientKeeper() = default;
  virtual void before_backward(std::size_t index, Segment& segment) = 0;
  virtual void after_backward(std::size_t index) = 0;
};

/// Makes the segments of a stack, in the order of `make_layout(config).segments`, on the parameters of `store`, which
/// must outlive them.
using SegmentFactory =
    std::function<std::vector<std::unique_ptr<Segment>>(const Config& config, const ParameterStore& store)>;

/// The reference backend: every model, any device, any dtype.
std::vector<std::unique_ptr<Segment>> make_reference_segments(const Config& config, const ParameterStore& store);

/// The model: its layout, its parameters and its segments, walked up for the loss and down for the gradient.
class Stack {
 public:
  /// Builds what `config` (resolved) describes with the initial weights of `config.seed`. Which backend runs it is the
  /// caller's choice (kernels/backend.h).
  Stack(const Config& config, at::Device device, const SegmentFactory& make_segments = make_reference_segments);

  const Layout& layout() const { return layout_; }
  ParameterStore& store() { return store_; }
  std::size_t segment_count() const { return segments_.size(); }

  /// The loss of the batch, a scalar tensor: mean over its tokens, natural logarithm.
  at::Tensor forward(const Pass& pass, Watchers watchers = {});
  /// Adds factor·dL/dθ of the last forward into the store's gradients.
  void backward(const Pass& pass, double factor, Watchers watchers = {}, GradientKeeper* keeper = nullptr);
  /// Segments first … last − 1 as a part of the caller's own graph. Throws std::logic_error with another backend than
  /// aten.
  Stream forward_in_graph(std::size_t first, std::size_t last, Stream stream, const Pass& pass);

 private:
  std::int64_t group_of(std::size_t s) const { return layout_.segments[s].layer / group_; }
  bool starts_group(std::size_t s) const { return s == 0 || group_of(s) != group_of(s - 1); }
  /// A copy of what enters group `group` (from 1), kept in the pool until backward.
  at::Tensor kept(at::Tensor& pool, std::int64_t group, const at::Tensor& x) const;
  /// Runs segments first … last forward again, this time keeping what their backward needs.
  void run_again(std::size_t first, std::size_t last, const Pass& pass);

  Layout layout_;
  ParameterStore store_;
  std::vector<std::unique_ptr<Segment>> segments_;
  // Under recompute layers are run again in groups of so many, and what enters each group is kept. In one block of
  // memory: kept where they were computed, between operators' passing results, they would leave the heap full of holes.
  std::int64_t group_;
  std::vector<Stream> group_inputs_;
  at::Tensor input_pool_, second_pool_;
  at::Tensor loss_;
};

}  // namespace gradflow
