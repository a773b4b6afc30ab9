#pragma once

#include <span>
#include <string_view>

namespace gradflow {

/// When a quantity is measured: with every layer row, with the set `all`, or only when it is named (own pass).
enum class QuantitySet { standard, all, on_demand };

struct Quantity {
  std::string_view name;
  QuantitySet set;
};

/// What `record.quantities` may name: the measured columns of layers.csv, then the quantities
/// of quantities.csv.
std::span<const Quantity> measured_quantities();

/// The quantity of that name, or null.
const Quantity* find_quantity(std::string_view name);

/// The words that stand for whole sets: none (parameter columns only), standard, all.
std::span<const std::string_view> quantity_words();

}  // namespace gradflow
