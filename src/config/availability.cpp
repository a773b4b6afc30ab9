#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "config/fields.h"
#include "config/quantities.h"
#include "config/rules.h"

namespace gradflow {
namespace {

/// One thing that is described but not built: when it arrives, its row goes.
struct NotYet {
  std::string_view key;
  bool (*asked_for)(const Config&);
  std::string_view instead;
};

bool asks_for_quantities(const Config& config) {
  return std::any_of(config.record.quantities.begin(), config.record.quantities.end(), [](const std::string& name) {
    const Quantity* quantity = find_quantity(name);
    return quantity != nullptr && quantity->set == QuantitySet::on_demand;
  });
}

constexpr NotYet not_yet[] = {
    {"record.quantities", asks_for_quantities, "write none, standard, all or names of columns of layers.csv"},
};

}  // namespace

void check_availability(Examination& examination) {
  for (const NotYet& row : not_yet)
    if (row.asked_for(examination.config))
      examination.refuse({row.key}, fmt::format("{} is not available yet; {}",
                                                find_field(row.key)->value(examination.config).dump(), row.instead));
}

}  // namespace gradflow
