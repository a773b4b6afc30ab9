#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "model/stack.h"

namespace gradflow {

/// One row of quantities.csv without its step.
struct StackNumber {
  std::optional<std::int64_t> layer;  ///< block; absent: of the whole stack
  std::string_view quantity;
  double value = 0;
};

/// What Adam has collected, for the preconditioned Hessian.
struct SecondMoment {
  std::vector<at::Tensor> of_entries;  ///< of each parameter tensor of the store
  std::int64_t updates = 0;            ///< so far
};

/// Measures the quantities on demand: in a pass of their own over one fixed batch, on a float64 copy of the weights
/// built with the reference backend, so that no bit of the run can change and small differences do not drown. Dropout
/// is off; BatchNorm takes the statistics of the batch, as in training, and leaves the running ones alone.
///
/// What each name measures: config/quantities.cpp.
class OnDemandMeter {
 public:
  /// `wanted`: names of that table. The batch is kept.
  OnDemandMeter(const Config& config, Batch batch, at::Device device, const std::set<std::string_view>& wanted);

  /// Of the weights of `store`, as they are after update `step` (0: none). `second_moment` is absent without Adam.
  /// Throws Interrupted, between two products or segments, when a signal has waited too long (give_up_if_overdue).
  std::vector<StackNumber> measure(const ParameterStore& store, std::int64_t step,
                                   const std::optional<SecondMoment>& second_moment = std::nullopt);

 private:
  bool wants(std::string_view name) const { return wanted_.contains(name); }
  Pass pass(std::int64_t step) const;
  void take_weights(const ParameterStore& store);
  at::Tensor logits(const Pass& pass);
  /// The stream behind block 0 (the embedding) … N.
  std::vector<Stream> streams_behind_blocks(Stream stream, const Pass& pass);
  at::Tensor random_signs(std::string_view name, std::int64_t count) const;

  void jacobian(const Pass& pass, std::vector<StackNumber>& numbers);
  void hessian(const Pass& pass, const std::optional<SecondMoment>& second_moment, std::vector<StackNumber>& numbers);
  void noise(const Pass& pass, std::vector<StackNumber>& numbers);
  void lesion(const Pass& pass, std::vector<StackNumber>& numbers);
  void similarity(const Pass& pass, std::vector<StackNumber>& numbers);

  Config config_;
  Batch batch_;
  at::Device device_;
  std::set<std::string_view> wanted_;
  Stack stack_;
  std::vector<std::size_t> block_ends_;  // [l]: the segment behind block l, from l = 0
  at::Tensor initial_logits_;
};

}  // namespace gradflow
