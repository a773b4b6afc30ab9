#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>

namespace gradflow {

/// When a quantity is measured: with every layer row, with the set `all`, or only when it is named (own pass).
enum class QuantitySet { standard, all, on_demand };

struct Quantity {
  std::string_view name;
  QuantitySet set;
  bool inside = false;            ///< measured inside a sub-layer, where only the reference backend can look
  std::string_view meaning = {};  ///< of a quantity on demand; those of columns stand in output/columns.cpp
};

/// What `record.quantities` may name: the measured columns of layers.csv, then the quantities
/// of quantities.csv.
std::span<const Quantity> measured_quantities();

/// The quantity of that name, or null.
const Quantity* find_quantity(std::string_view name);

/// The quantities that a list of names and words stands for (`record.quantities`).
std::set<std::string_view> quantities_asked_for(std::span<const std::string> words);
/// Those of them that are measured on demand.
std::set<std::string_view> on_demand_among(const std::set<std::string_view>& names);
/// Whether one of them is measured inside sub-layers, so that the stack must be built with the reference backend.
bool look_inside(std::span<const std::string> words);

/// Markdown, one row for each quantity on demand.
std::string on_demand_table();

/// The words that stand for whole sets: none (parameter columns only), standard, all.
std::span<const std::string_view> quantity_words();

}  // namespace gradflow
