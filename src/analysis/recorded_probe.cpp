#include "analysis/recorded_probe.h"

#include <algorithm>
#include <array>

#include "config/choices.h"
#include "core/error.h"
#include "output/csv_rows.h"

namespace gradflow {
namespace {

constexpr auto wanted =
    std::to_array<std::string_view>({"placement", "norm", "residual", "initialization", "depth", "seed", "layer",
                                     "sublayer", "quantity", "value", "predicted_low", "predicted_high"});

/// Room is made for every block: beyond this a number is damage and no depth.
constexpr std::int64_t deepest = 1'000'000;

bool is_known(const ProbeKind& kind) {
  return choice_named<Placement>(kind.placement) && choice_named<Norm>(kind.norm) &&
         choice_named<Residual>(kind.residual) && choice_named<Initialization>(kind.initialization);
}

/// Names of quantities become names of files.
bool is_name(std::string_view word) {
  return !word.empty() && word.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string_view::npos;
}

}  // namespace

RecordedProbe read_probe(const std::string& folder) {
  RecordedProbe probe{folder, {}};
  const std::string path = folder + "/probe.csv";
  read_csv_rows(path, probe_columns(), wanted, [&](const CsvRow& row) {
    const ProbeKind kind{std::string(row.text(0)), std::string(row.text(1)), std::string(row.text(2)),
                         std::string(row.text(3))};
    const std::int64_t depth = row.integer(4);
    ProbeCell* cell = probe.cells.empty() ? nullptr : &probe.cells.back();
    if (cell == nullptr || cell->kind != kind || cell->depth != depth) {
      if (!is_known(kind) || depth < 1 || depth > deepest)
        throw Error(path + ": " + kind.placement + ", " + kind.norm + ", " + kind.residual + ", " +
                    kind.initialization + ", depth " + std::to_string(depth) +
                    " is no stack of this version; the file was changed by something else: probe again");
      const auto met = std::find_if(probe.cells.begin(), probe.cells.end(),
                                    [&](const ProbeCell& each) { return each.kind == kind && each.depth == depth; });
      cell = met != probe.cells.end() ? &*met : &probe.cells.emplace_back(ProbeCell{kind, depth, {}});
    }
    if (!is_name(row.text(8)))
      throw Error(path + ": quantity: \"" + std::string(row.text(8)) +
                  "\" is no name of one; the file was changed by something else: probe again");
    ProbeValue value{.seed = row.integer(5),
                     .sublayer = std::string(row.text(7)),
                     .quantity = std::string(row.text(8)),
                     .value = row.number(9)};
    if (!row.empty(6)) value.layer = row.integer(6);
    if (!row.empty(10) && !row.empty(11)) value.predicted = Band{row.number(10), row.number(11)};
    cell->values.push_back(std::move(value));
  });
  if (probe.cells.empty()) throw Error(path + ": holds no row; probe again");
  return probe;
}

}  // namespace gradflow
