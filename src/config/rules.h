#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "config/config.h"
#include "config/faults.h"

namespace gradflow {

/// A configuration under examination, and where its keys were written.
class Examination {
 public:
  Examination(const Config& examined, const Origins& origins, Faults& faults)
      : config(examined), origins_(origins), faults_(faults) {}

  /// Refuses a combination. The first key is the one named; the place is that of the first key that was written.
  /// Nothing is said about keys that are at fault already.
  void refuse(std::initializer_list<std::string_view> keys, std::string_view fault);
  /// The same for several faults of one key.
  void refuse(std::string_view key, std::span<const std::string> faults);
  /// Whether nothing is known against the keys that begin so.
  bool in_order(std::string_view prefix) const { return !faults_.concern_keys(prefix); }

  const Config& config;

 private:
  const Origins& origins_;
  Faults& faults_;
};

/// Combinations of values that are each allowed but cannot be built or run together.
void check_combinations(Examination& examination);

/// `compute.backend: fused` where that backend cannot run the configuration (config/backend.h).
void check_backend(Examination& examination);

}  // namespace gradflow
