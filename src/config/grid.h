#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/load.h"

namespace gradflow {

/// A grid of configurations:
///
///   {"base": "file.json" or {…},
///    "axes": {"model.placement": ["pre", "post"], "seed": [1, 2, 3]},
///    "together": [[{"model.depth": 6, "train.batch": 8}, {"model.depth": 12, "train.batch": 4}]],
///    "exclude": [{"model.placement": "post", "model.depth": 12}]}
///
/// The axes are multiplied in the order of the file, then the lists of `together`, each of them one more axis whose
/// keys change together; the last changes fastest. An entry of `exclude` drops the cells that match all its keys. Paths
/// are relative to the grid file, those inside a base file to that. The runs take the grid file's stem as their name
/// unless the base has one.
class Grid {
 public:
  /// Reads the file and the base, on which KEY=VALUE overrides act. Throws one Error with a line for everything that is
  /// wrong with them as they stand; whether a cell can be built, only its `config` tells.
  explicit Grid(const std::string& path, std::span<const std::string> overrides = {});
  /// The same from a grid that stands inside the file `path`.
  Grid(const JsonValue& grid, std::string path);

  const std::string& path() const { return path_; }
  /// Cells that `exclude` leaves.
  std::size_t size() const { return cells_.size(); }
  /// Every key that the axes give, in their order.
  std::vector<std::string_view> keys() const;
  /// What the axes give the cell, in the order of `keys`.
  std::vector<Setting> settings(std::size_t cell) const;
  /// The cell for people: "model.placement=post seed=2"; "the base" without axes.
  std::string label(std::size_t cell) const;
  /// The cell's configuration, checked. Throws Error like load_config.
  Config config(std::size_t cell, const FurtherCheck& further = {}) const;

  /// Where the base is written: a file, or empty for one that stands in the grid file.
  const std::string& base_file() const { return base_file_; }
  /// The base that stands in the grid file.
  const JsonValue& base() const { return base_; }
  std::span<const std::string> overrides() const { return overrides_; }
  /// What is no fault but hardly meant, one line each: an exclusion without effect.
  std::span<const std::string> warnings() const { return warnings_; }

 private:
  class Reader;
  /// One of the things that are multiplied: its entries, each of which sets the same keys.
  using Axis = std::vector<std::vector<Setting>>;

  std::vector<Setting> settings_of(std::size_t position) const;
  ConfigSources sources(std::span<const Setting> settings) const;

  std::string path_;
  std::string base_file_;
  JsonValue base_;
  std::vector<std::string> overrides_;
  std::vector<Axis> axes_;
  std::vector<std::size_t> cells_;  ///< positions in the product, the last axis fastest
  std::vector<std::string> warnings_;
};

}  // namespace gradflow
